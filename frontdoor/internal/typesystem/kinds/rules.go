package kinds

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Rules are what a file says about one definition beyond the OpenAPI document.
type Rules struct {
	// Defaults are filled in where the object says nothing; objects merge.
	Defaults map[string]any `json:"defaults"`
	// ZeroIsNone makes numbers of zero count as not given, where there is a default.
	ZeroIsNone bool `json:"zeroIsNone"`
	// DefaultsWhen are further defaults for objects that have certain values.
	DefaultsWhen []conditional `json:"defaultsWhen"`
	// Derive names functions that compute a default from other fields.
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
	Fields map[string]*Field `json:"fields"`
	// Specified are the names that the specification has for fields, with those of the
	// document. The neutral vocabulary accepts both.
	Specified map[string]string `json:"specified"`
	// OneOf lists fields of which exactly one must be given, AtMostOne fields of
	// which no two may be given. Sort is what users call them ("volume type").
	OneOf     []string `json:"oneOf"`
	AtMostOne []string `json:"atMostOne"`
	Sort      string   `json:"sort"`
	// Either lists fields of which exactly one must be given. None of several is looked
	// into.
	Either []string `json:"either"`
	// Choice is a field whose value says which other field must be given.
	Choice *Choice `json:"choice"`
	// Checks name functions that compare several fields.
	Checks []string `json:"checks"`

	// The functions that Derive and Checks name; see Functions.Resolve.
	DeriveFuncs []rules.DeriveFunc `json:"-"`
	CheckFuncs  []rules.CheckFunc  `json:"-"`
}

// conditional are defaults for objects with certain values; null stands for none.
type conditional struct {
	When map[string]any `json:"when"`
	Set  map[string]any `json:"set"`
}

// Choice is a union: Of gives, by the value of the field By, the field that belongs to
// it. The others may not be given. One that is Optional may be left out too.
type Choice struct {
	By       string            `json:"by"`
	Of       map[string]string `json:"of"`
	Optional bool              `json:"optional"`
}

// Field is the rules of one field. For a list, those on values are about
// each item.
type Field struct {
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
	// NotEmpty lists and objects have at least one member, NotEmpty texts are not "".
	NotEmpty bool `json:"notEmpty"`
	// Stated says whether an empty text is a value like any other, to be valid as such,
	// or the same as none. Without it, the published type says so.
	Stated *bool `json:"stated"`
	// Forbidden fields may not be set; the text says why.
	Forbidden string `json:"forbidden"`
	// Unchecked fields may have anything of their type in them.
	Unchecked bool `json:"unchecked"`
	// Blank fields are checked as empty, or zero, when they are left out; they are
	// required only if the file says so as well.
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

	// What Pattern, Format and KeyFormat stand for; nil where they are empty.
	Expression        *regexp.Regexp `json:"-"`
	Checked, KeyCheck format.Format  `json:"-"`
}

// compile checks and compiles what the rules say of fields.
func (r *Rules) compile() error {
	for name, f := range r.Fields {
		if err := f.compile(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f *Field) compile() (err error) {
	if f.Pattern != "" {
		if f.Expression, err = regexp.Compile("^(?:" + f.Pattern + ")$"); err != nil {
			return err
		}
	}
	if f.Checked, err = format.Named(f.Format); err != nil {
		return err
	}
	f.KeyCheck, err = format.Named(f.KeyFormat)
	return err
}

func (r *Rules) IsOptional(name string) bool { return r != nil && slices.Contains(r.Optional, name) }
func (r *Rules) IsBlank(name string) bool {
	return r != nil && r.Fields[name] != nil && r.Fields[name].Blank
}
func (r *Rules) IsRequired(name string) bool { return r != nil && slices.Contains(r.Required, name) }

// Rename gives fields that have the specification's names those of the document.
func (r *Rules) Rename(m map[string]any, v vocabulary.Vocabulary) {
	if !v.Behaviour.SpecifiedNames {
		return
	}
	for from, to := range r.Specified {
		if value, given := m[from]; given && (m[to] == nil || m[to] == value) {
			delete(m, from)
			m[to] = value
		}
	}
}

// Complete applies the defaults to an object, in place.
func (r *Rules) Complete(m map[string]any, v vocabulary.Vocabulary) {
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
	for _, derive := range r.DeriveFuncs {
		derive(m, v)
	}
}

// holds reports whether the object has the values of the condition.
func (c conditional) holds(m map[string]any) bool {
	for name, value := range c.When {
		if given := m[name]; given != value && !(value == nil && rules.Empty(given)) {
			return false
		}
	}
	return true
}
