// Package fieldmanager computes the next state of an object from the current one and a
// patch: JSON patch, merge patch, strategic merge patch and server-side apply. It
// determines the field manager of each field and records it in metadata.managedFields.
//
// Objects are maps as JSON decoding makes them (map[string]any, []any, string, int64,
// float64, bool, nil). The current object is never modified and never shared with a result.
// The package does not prune, default, validate or store, and gets all knowledge of types
// from the catalogue. It serves "Patch content types", "Server-side apply" and
// "Managed-fields entry" of the specification.
package fieldmanager

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/fields"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Types is the part of the catalogue that an engine needs, by its methods there.
type Types interface {
	Release() release.Release
	Converter() managedfields.TypeConverter
	Definitions() catalogue.Definitions
}

// Options configure an Engine.
type Options struct {
	Vocabulary vocabulary.Vocabulary
	Types      Types
	// Convert returns the object in another version of its type without modifying it. It
	// returns catalogue.ErrNoVersion for an unknown version. If nil, versions of a type
	// differ only in apiVersion.
	Convert func(t *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error)
	// Drop removes the fields from an object of a custom type that its version lacks, in
	// place. If nil, all versions have the same fields.
	Drop func(t *catalogue.Type, object map[string]any)
	// WithoutApply disables server-side apply and the tracking of managed fields (feature
	// gate ServerSideApply=false).
	WithoutApply bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Engine applies patches and tracks managed fields. It may be used concurrently.
type Engine struct {
	Options
	unowned fields.Tree // the fields that no manager owns

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

// rename converts between versions that differ only in apiVersion.
func rename(_ *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error) {
	return replaced(object, "apiVersion", apiVersion), nil
}

// maxSiblings limits the sum of the squared lengths of all objects and lists within an
// object: the library inserts fields in random order into sorted slices, which takes about
// a second at this limit.
const maxSiblings = 1_000_000_000

// tooManyFields returns the 413 of an object above maxSiblings. Writes other than an apply
// succeed and keep the managed fields unchanged.
func tooManyFields() error {
	return limit.Exceeded(limit.Fields, services.TooLarge("The object has too many fields to tell their managers apart"))
}

// affordable subtracts the squared lengths in a value from left, and reports whether left
// stays positive.
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

// Typed returns the object as a typed value of the field-set library, without
// managedFields, which no manager owns.
func (e *Engine) Typed(object map[string]any, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	left := maxSiblings
	if !affordable(object, &left) {
		return nil, tooManyFields()
	}
	return e.Types.Converter().ObjectToTyped(&unstructured.Unstructured{Object: withoutOwners(object)}, o...)
}

// updater returns the library's updater for one request. It ignores the fields that the
// subresource does not change.
func (e *Engine) updater(t *catalogue.Type, subresource string, o owners) *smd.Updater {
	b := smd.UpdaterBuilder{Converter: versions{e, t, map[string]pair{}}}
	if left := untouched(t, subresource); left != nil {
		filter := fieldpath.NewExcludeSetFilter(setOf(left))
		b.IgnoreFilter = map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(t.APIVersion()): filter}
		for _, set := range o.fields {
			b.IgnoreFilter[set.APIVersion()] = filter
		}
	}
	return b.BuildUpdater()
}

var _ Types = (*catalogue.Catalogue)(nil)
