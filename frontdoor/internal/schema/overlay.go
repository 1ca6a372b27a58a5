package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules/cluster"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules/network"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules/pods"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules/storage"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules/workloads"
	"github.com/portico-platform/portico/services/vocabulary"
)

//go:embed overlay/*.yaml
var overlayFiles embed.FS

// overlay maps the short names of definitions (apps.v1.Deployment) to what the
// document does not say about them. A file may give several names to one set of
// rules, separated by spaces.
type overlay map[string]*ruleset

// ruleset is the overlay's words about one definition.
type ruleset struct {
	// Defaults are filled in where the object says nothing; objects merge.
	Defaults map[string]any `json:"defaults"`
	// ZeroIsNone makes numbers of zero count as not given, where there is a default.
	ZeroIsNone bool `json:"zeroIsNone"`
	// DefaultsWhen are further defaults for objects that have certain values.
	DefaultsWhen []conditional `json:"defaultsWhen"`
	// Derive names functions that compute a default from other fields (package rules).
	Derive []string `json:"derive"`
	// Required fields must be given and not be empty, beyond what the document
	// requires; Optional ones need not, against the document.
	Required []string `json:"required"`
	Optional []string `json:"optional"`
	// Fixed fields keep the value that they were created with. The fields of Once
	// may be given later, and then stay.
	Fixed []string `json:"fixed"`
	Once  []string `json:"once"`
	// Fields are the rules of single fields.
	Fields map[string]*fieldRules `json:"fields"`
	// OneOf lists fields of which exactly one must be given, AtMostOne fields of
	// which no two may be given. Sort is what users call them ("volume type").
	OneOf     []string `json:"oneOf"`
	AtMostOne []string `json:"atMostOne"`
	Sort      string   `json:"sort"`
	// Choice is a field whose value says which other field must be given.
	Choice *choice `json:"choice"`
	// Checks name functions that compare several fields (package rules).
	Checks []string `json:"checks"`

	derive []rules.Derivation
	checks []rules.Comparison
}

// conditional are defaults for objects with certain values.
type conditional struct {
	When map[string]any `json:"when"`
	Set  map[string]any `json:"set"`
}

// choice is a union: Of gives, by the value of the field By, the field that belongs to
// it. The others may not be given. One that is Optional may be left out too.
type choice struct {
	By       string            `json:"by"`
	Of       map[string]string `json:"of"`
	Optional bool              `json:"optional"`
}

// fieldRules are the rules of one field. For a list, those on values are about
// each item.
type fieldRules struct {
	Enum      []string `json:"enum"`
	Min       *int64   `json:"min"`
	Max       *int64   `json:"max"`
	MaxLength int      `json:"maxLength"`
	Pattern   string   `json:"pattern"`
	// Format names a format (package format); KeyFormat is that of a map's keys.
	Format    string `json:"format"`
	KeyFormat string `json:"keyFormat"`
	// Unique names the fields that tell the items of a list apart; "." is the item.
	Unique   []string `json:"unique"`
	MaxItems int      `json:"maxItems"`
	// NotEmpty lists and objects have at least one member.
	NotEmpty bool `json:"notEmpty"`
	// Forbidden fields may not be set; the text says why.
	Forbidden string `json:"forbidden"`
	// Blank fields are checked as empty, or zero, when they are left out; they are
	// required only if the overlay says so as well.
	Blank bool `json:"blank"`
	// ZeroIsNone makes a number of zero count as not given.
	ZeroIsNone bool `json:"zeroIsNone"`
	// Missing says why a required value is, and Says what is wrong with one outside of
	// Enum, Min, Max or MaxItems, where users know it in other words than the usual.
	Missing string `json:"missing"`
	Says    string `json:"says"`
	// At is where mistakes are reported, as a path from the object that has the field
	// (../name); "" is the field.
	At string `json:"at"`

	pattern   *regexp.Regexp
	format    format.Format
	keyFormat format.Format
}

// The functions that the overlay may name, by subject.
var (
	comparisons = [...]map[string]rules.Comparison{rules.Comparisons, pods.Comparisons, workloads.Comparisons, network.Comparisons,
		storage.Comparisons, cluster.Comparisons}
	derivations = [...]map[string]rules.Derivation{pods.Derivations, workloads.Derivations, network.Derivations, cluster.Derivations}
)

// named finds a function.
func named[F any](name string, subjects []map[string]F) (F, error) {
	for _, functions := range subjects {
		if f, ok := functions[name]; ok {
			return f, nil
		}
	}
	var none F
	return none, fmt.Errorf("nothing is called %q", name)
}

// theOverlay is read once: engines come and go with custom types, the overlay stays.
var theOverlay = sync.OnceValues(readOverlay)

// readOverlay reads and checks all files.
func readOverlay() (overlay, error) {
	o := overlay{}
	files, err := fs.Glob(overlayFiles, "overlay/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := overlayFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var named map[string]*ruleset
		asJSON, err := yaml.YAMLToJSONStrict(content)
		if err == nil {
			var strict []error
			if strict, err = kjson.UnmarshalStrict(asJSON, &named, kjson.DisallowUnknownFields); err == nil && len(strict) > 0 {
				err = strict[0]
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for names, r := range named {
			if err := r.resolve(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, names, err)
			}
			for name := range strings.FieldsSeq(names) {
				if o[name] != nil {
					return nil, fmt.Errorf("%s: %s is described twice", file, name)
				}
				o[name] = r
			}
		}
	}
	return o, nil
}

// resolve looks up what the rules name.
func (r *ruleset) resolve() error {
	for _, name := range r.Derive {
		derive, err := named(name, derivations[:])
		if err != nil {
			return err
		}
		r.derive = append(r.derive, derive)
	}
	for _, name := range r.Checks {
		compare, err := named(name, comparisons[:])
		if err != nil {
			return err
		}
		r.checks = append(r.checks, compare)
	}
	for name, f := range r.Fields {
		if err := f.resolve(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f *fieldRules) resolve() (err error) {
	if f.Pattern != "" {
		if f.pattern, err = regexp.Compile("^(?:" + f.Pattern + ")$"); err != nil {
			return err
		}
	}
	if f.format, err = format.Named(f.Format); err != nil {
		return err
	}
	f.keyFormat, err = format.Named(f.KeyFormat)
	return err
}

func (r *ruleset) isOptional(name string) bool { return r != nil && slices.Contains(r.Optional, name) }
func (r *ruleset) isBlank(name string) bool {
	return r != nil && r.Fields[name] != nil && r.Fields[name].Blank
}
func (r *ruleset) isRequired(name string) bool { return r != nil && slices.Contains(r.Required, name) }

// complete applies the defaults to an object, in place.
func (r *ruleset) complete(m map[string]any, v vocabulary.Vocabulary) {
	if r.ZeroIsNone {
		for name := range r.Defaults {
			if m[name] == int64(0) {
				delete(m, name)
			}
		}
	}
	rules.Complete(m, r.Defaults)
	for _, c := range r.DefaultsWhen {
		if c.holds(m) {
			rules.Complete(m, c.Set)
		}
	}
	for _, derive := range r.derive {
		derive(m, v)
	}
}

// holds tells whether the object has the values of the condition.
func (c conditional) holds(m map[string]any) bool {
	for name, value := range c.When {
		if m[name] != value {
			return false
		}
	}
	return true
}
