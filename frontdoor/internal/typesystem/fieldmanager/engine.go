// Package fieldmanager makes the next state of an object out of its current one and
// what a client sent: JSON patch, merge patch, strategic merge patch and
// server-side apply. It decides who owns which field and keeps the record of that
// in metadata.managedFields.
//
// Objects are maps as JSON decoding makes them (map[string]any, []any, string,
// int64, float64, bool, nil). The current object is never modified and never
// shared with a result. The package does not prune, default, validate or store,
// and it knows no type: the catalogue tells it. It serves "Patch content types",
// "Server-side apply" and "Managed-fields entry" of the specification.
package fieldmanager

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/fields"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Types is what an engine asks of the catalogue.
type Types interface {
	// Converter returns what knows the fields and list types of every kind.
	Converter() (managedfields.TypeConverter, error)
	// Definitions returns the schemas by name.
	Definitions() map[string]*spec.Schema
}

// Options are what an Engine needs to know.
type Options struct {
	Vocabulary vocabulary.Vocabulary
	Types      Types
	// Convert returns the object in another version of its type, without touching
	// the one it is given; catalogue.ErrNoVersion when that version is not known. Without it
	// versions of a type differ in nothing but their name.
	Convert func(t *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error)
	// WithoutApply turns server-side apply and the tracking of field owners off
	// (feature gate ServerSideApply=false).
	WithoutApply bool
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Engine merges. It may be used concurrently.
type Engine struct {
	Options
	unowned fields.Tree // the fields that nobody owns

	mu    sync.RWMutex
	known map[kind]*knowledge
}

// New returns an engine.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Convert == nil {
		o.Convert = rename
	}
	return &Engine{Options: o, unowned: unowned(), known: map[kind]*knowledge{}}
}

// rename is the conversion between versions that differ in nothing else.
func rename(_ *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error) {
	renamed := make(map[string]any, len(object))
	for k, v := range object {
		renamed[k] = v
	}
	renamed["apiVersion"] = apiVersion
	return renamed, nil
}

// maxSiblings is the limit on the sum, over all objects and lists within an object, of the
// squares of their lengths: the library inserts fields into sorted slices, in no order,
// and takes about a second for as many.
const maxSiblings = 1_000_000_000

// tooManyFields is the 413 of an object with more fields side by side than that. Writes
// other than an apply then leave the field managers as they were.
func tooManyFields() error {
	return limit.Exceeded(limit.Fields, services.TooLarge("The object has too many fields to tell their managers apart"))
}

// affordable takes the squares of a value from what is left, and reports whether they fit.
func affordable(value any, left *int) bool {
	switch v := value.(type) {
	case map[string]any:
		if *left -= len(v) * len(v); *left < 0 {
			return false
		}
		for _, below := range v {
			if !affordable(below, left) {
				return false
			}
		}
	case []any:
		if *left -= len(v) * len(v); *left < 0 {
			return false
		}
		for _, below := range v {
			if !affordable(below, left) {
				return false
			}
		}
	}
	return true
}

// typed returns the object as the field-set library sees it. The entries of
// managedFields are left out: ownership is not a field that anybody owns.
func (e *Engine) typed(object map[string]any, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	left := maxSiblings
	if !affordable(object, &left) {
		return nil, tooManyFields()
	}
	converter, err := e.Types.Converter()
	if err != nil {
		return nil, err
	}
	return converter.ObjectToTyped(&unstructured.Unstructured{Object: withoutOwners(object)}, o...)
}

// updater returns the library's algorithm for one request. It ignores the fields
// that the subresource leaves alone.
func (e *Engine) updater(t *catalogue.Type, subresource string, o owners) *smd.Updater {
	b := smd.UpdaterBuilder{Converter: versions{e, t}}
	if left := untouched(t, subresource); left != nil {
		filter := fieldpath.NewExcludeSetFilter(setOf(left))
		b.IgnoreFilter = map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(t.APIVersion()): filter}
		for _, set := range o.fields {
			b.IgnoreFilter[set.APIVersion()] = filter
		}
	}
	return b.BuildUpdater()
}

// versions converts between the versions of one type, for entries of
// managedFields that were made in another.
type versions struct {
	engine *Engine
	t      *catalogue.Type
}

// Convert returns the object in another version.
func (v versions) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	from, ok := object.AsValue().Unstructured().(map[string]any)
	if !ok || from["apiVersion"] == string(version) {
		return object, nil
	}
	to, err := v.engine.Convert(v.t, from, string(version))
	if err != nil {
		return nil, err
	}
	converted, err := v.engine.typed(to, typed.AllowDuplicates)
	if err != nil {
		return nil, errors.Join(catalogue.ErrNoVersion, err)
	}
	return converted, nil
}

// IsMissingVersionError reports whether a version is gone.
func (v versions) IsMissingVersionError(err error) bool {
	return errors.Is(err, catalogue.ErrNoVersion)
}

var (
	_ smd.Converter = versions{}
	_ Types         = (*catalogue.Catalogue)(nil)
)
