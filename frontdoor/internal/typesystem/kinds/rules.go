package kinds

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Rules are the rules of one definition beyond the OpenAPI document.
type Rules struct {
	// Defaults are set where the object has no value; objects are merged.
	Defaults map[string]any `json:"defaults"`
	// ZeroIsNone treats numbers that are zero and have a default as absent.
	ZeroIsNone bool `json:"zeroIsNone"`
	// DefaultsWhen are further defaults that depend on values of the object.
	DefaultsWhen []conditional `json:"defaultsWhen"`
	// Derive names functions that compute defaults from other fields.
	Derive []string `json:"derive"`
	// Required fields must be set and not empty, beyond what the document requires;
	// Optional ones need not be, although the document requires them.
	Required []string `json:"required"`
	Optional []string `json:"optional"`
	// Absent are spec or status of a resource if it stays absent, rather than empty, until it is written.
	Absent []string `json:"absent"`
	// Fixed fields are immutable. The fields of Once are immutable once they are set.
	// Mutable lists, for a later release, fields that are no longer immutable.
	Fixed   []string `json:"fixed"`
	Once    []string `json:"once"`
	Mutable []string `json:"mutable"`
	// Fields are the rules of single fields.
	Fields map[string]*Field `json:"fields"`
	// Specified maps the names of fields in the specification to those of the document. The
	// neutral vocabulary accepts both.
	Specified map[string]string `json:"specified"`
	// OneOf lists fields of which exactly one must be set, AtMostOne fields of which at
	// most one may be set. Sort is the term for them in messages ("volume type").
	OneOf     []string `json:"oneOf"`
	AtMostOne []string `json:"atMostOne"`
	Sort      string   `json:"sort"`
	// Either lists fields of which exactly one must be set. The values of several are not
	// validated.
	Either []string `json:"either"`
	// EitherSays is the message for none of them, and begins the one for several; "" for the
	// usual ones.
	EitherSays string `json:"eitherSays"`
	// Choice is a union.
	Choice *Choice `json:"choice"`
	// Only says which field of a union is validated. The others are not, but a check may refuse them.
	Only *Only `json:"only"`
	// Checks names functions that compare several fields.
	Checks []string `json:"checks"`

	// Former names, for a later release, functions of Derive and Checks that no longer apply.
	Former []string `json:"former"`

	// Since are changes of the rules by the release that makes them.
	Since map[string]*Rules `json:"since"`

	// The functions that Derive and Checks name; set by Set.Resolve.
	DeriveFuncs []rules.DeriveFunc `json:"-"`
	CheckFuncs  []rules.CheckFunc  `json:"-"`
}

// conditional are defaults for objects with certain values; null means absent.
type conditional struct {
	When map[string]any `json:"when"`
	Set  map[string]any `json:"set"`
}

// Choice is a union: Of maps each value of the field By to the field that must be set with
// it. The others must not be set. If Optional is set, all of them may be absent.
type Choice struct {
	By       string            `json:"by"`
	Of       map[string]string `json:"of"`
	Optional bool              `json:"optional"`
	// First has an order of the fields: only the first one that is set is validated, and the
	// others are refused only if several are set.
	First []string `json:"first"`
	// Missing and Surplus are the messages for a field that is missing, and for one too many.
	Missing string `json:"missing"`
	Surplus string `json:"surplus"`
}

// Only maps each value of the field By to the field of a union that belongs to it.
type Only struct {
	By string            `json:"by"`
	Of map[string]string `json:"of"`
}

// others returns the fields that do not belong to the value of By.
func (o *Only) others(m map[string]any) (names []string) {
	chosen, _ := m[o.By].(string)
	for value, name := range o.Of {
		if value != chosen {
			names = append(names, name)
		}
	}
	return names
}

// Field holds the rules of one field. For a list, the rules on values apply to each item.
type Field struct {
	Enum      []string `json:"enum"`
	Min       *int64   `json:"min"`
	Max       *int64   `json:"max"`
	MaxLength int      `json:"maxLength"`
	Pattern   string   `json:"pattern"`
	// Format names a format (package format) for values, KeyFormat one for the keys of a
	// map.
	Format    string `json:"format"`
	KeyFormat string `json:"keyFormat"`
	// Unique names the fields that identify the items of a list; "." is the whole item.
	Unique   []string `json:"unique"`
	MaxItems int      `json:"maxItems"`
	// NotEmpty lists and objects must have a member, NotEmpty strings must not be "".
	NotEmpty bool `json:"notEmpty"`
	// Stated says whether an empty string is a value that must be valid, or counts as
	// absent. If it is nil, the published type decides.
	Stated *bool `json:"stated"`
	// Forbidden fields must not be set; the text is the message.
	Forbidden string `json:"forbidden"`
	// Unchecked fields are only validated for their type.
	Unchecked bool `json:"unchecked"`
	// AtCreation fields are only validated in new objects.
	AtCreation bool `json:"atCreation"`
	// Blank fields are validated as empty or zero when they are absent; they are required
	// only if Required lists them.
	Blank bool `json:"blank"`
	// ZeroIsNone treats a number that is zero as absent.
	ZeroIsNone bool `json:"zeroIsNone"`
	// Missing is the message for a missing required value, Says the message for a value
	// outside of Enum, Min, Max or MaxItems, where Kubernetes uses another than the usual.
	Missing string `json:"missing"`
	Says    string `json:"says"`
	// At is the path of errors, relative to the object that has the field (../name); "" is
	// the field itself.
	At string `json:"at"`

	// The compiled Pattern, Format and KeyFormat; nil where they are empty.
	Expression        *regexp.Regexp `json:"-"`
	Checked, KeyCheck format.Format  `json:"-"`
}

// compile validates and compiles the rules of fields.
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

// StaysAbsent reports whether an absent field is not added. The receiver may be nil.
func (r *Rules) StaysAbsent(name string) bool { return r != nil && slices.Contains(r.Absent, name) }

func (r *Rules) IsBlank(name string) bool {
	return r != nil && r.Fields[name] != nil && r.Fields[name].Blank
}

// IsRequired reports whether a field is one of Required. The receiver may be nil.
func (r *Rules) IsRequired(name string) bool { return r != nil && slices.Contains(r.Required, name) }

// Rename renames fields from the names of the specification to those of the document.
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
		dropZeros(m, r.Defaults)
		for _, c := range r.DefaultsWhen {
			dropZeros(m, c.Set)
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

// dropZeros removes numbers that are zero and have a default.
func dropZeros(m, defaults map[string]any) {
	for name := range defaults {
		if m[name] == int64(0) {
			delete(m, name)
		}
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
