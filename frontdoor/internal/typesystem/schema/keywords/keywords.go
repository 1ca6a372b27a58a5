// Package keywords validates single values against the keywords of a JSON schema: bounds,
// lengths, patterns, formats, enumerations, and the uniqueness that list types require. It
// does not descend into values; package schema does. It serves "Resources and their fields"
// of the specification, for custom types.
package keywords

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Set holds the keywords of one schema. It is immutable.
type Set struct {
	s       *spec.Schema
	types   []string // JSON types; empty for any
	pattern *regexp.Regexp
	format  string          // empty if it is not validated
	enum    []string        // as JSON
	listed  map[string]bool // the values of a long enumeration; nil for a short one
	allowed []string        // the enumeration in the form of messages
	keys    []string        // that identify the items of a list
	isSet   bool            // the items of a list must be unique
	// showsCount is true if errors about too few parts show their number, not the value.
	showsCount bool
}

// Compile compiles a schema's keywords for a release. It ignores an invalid pattern: definitions
// with one are rejected before.
func Compile(s *spec.Schema, r release.Release) *Set {
	k := &Set{s: s, showsCount: !r.Before(release.V136)}
	if s.Pattern != "" {
		k.pattern, _ = regexp.Compile(s.Pattern)
	}
	if Recognizes(r, strings.Join(s.Type, ","), s.Format) {
		k.format = s.Format
	}
	k.enumerate()
	prefix := vocabulary.K8s().Extension
	if k.types = s.Type; s.Extensions[prefix+"int-or-string"] == true {
		k.types = []string{"integer", "string"}
	}
	switch s.Extensions[prefix+"list-type"] {
	case "set":
		k.isSet = true
	case "map":
		list, _ := s.Extensions[prefix+"list-map-keys"].([]any)
		for _, item := range list {
			if key, ok := item.(string); ok {
				k.keys = append(k.keys, key)
			}
		}
	}
	return k
}

// fits reports whether a value has the JSON type that the schema requires, and adds an
// error if not. As in Kubernetes, a format of texts comes before the type: lists pass, and
// other values are of no type that has it.
func (k *Set) fits(e *field.Errors, value any, at *field.Path) bool {
	is, format := typeOf(value)
	_, whole := rules.Whole(value)
	typed := slices.Contains(k.types, is) || is == "integer" && slices.Contains(k.types, "number") || whole && slices.Contains(k.types, "integer")
	textual := is == "string" || is == "array"
	switch {
	case value == nil:
		typed = len(k.types) == 0 || k.s.Nullable
	case k.format == "":
		typed = typed || len(k.types) == 0
	case textual && !slices.Contains(k.types, "number") && !slices.Contains(k.types, "integer"):
		typed = true
	case !textual && !typed && format != k.format:
		e.TypeInvalid(at, format, at.String()+" in body must be of type "+k.format+": "+strconv.Quote(format))
		return false
	}
	if !typed {
		e.TypeInvalid(at, is, at.String()+" in body must be of type "+strings.Join(k.types, ",")+": "+strconv.Quote(is))
	}
	return typed
}

// typeOf returns the type of a value in the terms of JSON schema, and the format of a number.
func typeOf(value any) (is, format string) {
	switch value.(type) {
	case nil:
		return "null", ""
	case map[string]any:
		return "object", ""
	case []any:
		return "array", ""
	case string:
		return "string", ""
	case bool:
		return "boolean", ""
	case int64:
		return "integer", "int64"
	}
	return "number", "float64"
}

// Matched returns how many checks of Kubernetes a value has passed or could have failed, without those of its parts and
// of combinators. Of several schemas that a value does not match, the one with the most is reported.
func (k *Set) Matched(value any, fits bool) int {
	count := 4 // combinators and enumeration
	if value == nil {
		count = 0
	}
	if fits && (value == nil || len(k.types) > 0 || k.format != "") {
		count++
	}
	switch value.(type) {
	case string:
		count++
		if k.format != "" {
			count++
		}
	case int64, float64, []any:
		count += 2
	case map[string]any:
		count++
	}
	if value != nil && (len(k.types) > 0 || k.format != "") {
		count++
	}
	return count
}

// Valid adds the errors of a value. It reports whether the value has the JSON type that the schema
// requires.
func (k *Set) Valid(e *field.Errors, value any, at *field.Path) bool {
	fits := k.fits(e, value, at)
	k.check(e, value, at)
	return fits
}

// check adds the errors of a value of any JSON type.
func (k *Set) check(e *field.Errors, value any, at *field.Path) {
	k.checkEnum(e, value, at)
	f := found{e, at, value}
	switch v := value.(type) {
	case string:
		k.text(f, v)
	case int64:
		k.number(f, float64(v))
	case float64:
		k.number(f, v)
	case []any:
		k.list(f, v)
	case map[string]any:
		k.object(f, v)
	}
}

// checkEnum adds an error if a value is not in the enumeration.
func (k *Set) checkEnum(e *field.Errors, value any, at *field.Path) {
	if len(k.enum) == 0 {
		return
	}
	text := field.Display(value)
	if known := k.listed[text] || k.listed == nil && slices.Contains(k.enum, text); !known {
		e.NotSupported(at, value, k.allowed...)
	}
}

// searched is the longest enumeration whose values are compared one by one.
const searched = 16

// enumerate sets the values of the enumeration, of which a definition may have tens of thousands.
func (k *Set) enumerate() {
	for _, value := range k.s.Enum {
		text := field.Display(value)
		k.enum = append(k.enum, text)
		if s, ok := value.(string); ok {
			text = s
		}
		k.allowed = append(k.allowed, text)
	}
	if len(k.enum) > searched {
		k.listed = make(map[string]bool, len(k.enum))
		for _, text := range k.enum {
			k.listed[text] = true
		}
	}
}

// found is a value with its path, and the errors to add to.
type found struct {
	*field.Errors
	at    *field.Path
	value any
}

// counted returns the found value as the number of its parts, if errors show that.
func (f found) counted(shown bool, count int64) found {
	if shown {
		f.value = count
	}
	return f
}

// should adds the error of a violated rule.
func (f found) should(format string, args ...any) {
	f.Invalid(f.at, f.value, f.at.String()+" in body should "+fmt.Sprintf(format, args...))
}

// limit returns a limit as errors show it: a whole one of an integer, in the range of its format, has all its digits.
func (k *Set) limit(f found, value float64) any {
	i, whole := rules.Whole(value)
	_, isInteger := f.value.(int64)
	if !whole || !isInteger || k.format == "int32" && slices.Equal(k.types, []string{"integer"}) && i != int64(int32(i)) { //nolint:gosec // compared
		return value
	}
	return i
}

// wrongFormat adds the error of a value with a wrong format.
func (f found) wrongFormat(format string) {
	f.TypeInvalid(f.at, f.value, f.at.String()+" in body must be of type "+format+": "+field.Display(f.value))
}

func (k *Set) text(f found, value string) {
	length, most, least := int64(utf8.RuneCountInString(value)), k.s.MaxLength, k.s.MinLength
	switch { // as in Kubernetes, one error is enough
	case most != nil && length > *most:
		f.TooLong(f.at, int(*most))
	case least != nil && length < *least:
		f.should("be at least %d chars long", *least)
	case k.pattern != nil && !k.pattern.MatchString(value):
		f.should("match '%s'", k.s.Pattern)
	}
	if numeric := slices.Contains(k.types, "integer") || slices.Contains(k.types, "number"); k.format != "" && !numeric && !strfmt.Default.Validates(k.format, value) {
		f.wrongFormat(k.format)
	}
}

func (k *Set) number(f found, n float64) {
	k.inRange(f, "Checked", f.value)
	if m := k.s.MultipleOf; m != nil {
		k.inRange(f, "MultipleOf", *m)
		if *m <= 0 {
			f.Invalid(f.at, *m, "factor MultipleOf declared for "+f.at.String()+" must be positive: "+field.Display(*m))
		} else if !multiple(f.value, n, *m) {
			f.should("be a multiple of %v", k.limit(f, *m))
		}
	}
	k.bounds(f)
}

// noField is the path of errors about no field, as in Kubernetes.
var noField = &field.Path{Name: field.NoPath}

// inRange adds an error if a value, or a limit, is not in the range of the type and format of numbers.
func (k *Set) inRange(f found, what string, value any) {
	if len(k.types) != 1 {
		return
	}
	i, whole := rules.Whole(value)
	n, isFloat := value.(float64)
	switch kind := k.types[0]; {
	case kind == "integer" && !whole, kind == "integer" && k.format == "int32" && i != int64(int32(i)), //nolint:gosec // compared
		kind == "number" && k.format == "float" && isFloat && math.Abs(n) > math.MaxFloat32:
		format := "(default format)"
		if k.format != "" {
			format = "with format " + k.format
		}
		f.Invalid(noField, "", what+" value must be of type "+kind+" "+format+" in "+f.at.String())
	}
}

// multiple reports whether a number is a multiple of a factor: exactly if both are integers, which a
// float64 may not be able to hold; fractions are inexact, and no multiple beyond the integers that it holds.
func multiple(value any, n, factor float64) bool {
	if i, isInteger := value.(int64); isInteger && factor == math.Trunc(factor) {
		return i == 0 || factor < 1<<63 && i%int64(factor) == 0 || i == math.MinInt64 && factor == 1<<63
	}
	times := n / factor
	if factor < 1 {
		times = 1 / factor * n
	}
	whole := math.Trunc(times) // inexact upwards only, and not near zero, as in Kubernetes
	return times == whole && math.Abs(times) < 1<<53 || whole != 0 && math.Abs(times) < 1<<53 && math.Abs(times-whole)/math.Abs(times+whole) < 1e-9
}

// compare compares a number with a limit: exactly if it is an integer.
func compare(value any, limit float64) int {
	i, isInteger := value.(int64)
	switch {
	case !isInteger:
		n, _ := value.(float64)
		return cmp.Compare(n, limit)
	case limit >= 1<<63:
		return -1
	case limit < -1<<63:
		return 1
	}
	whole := math.Trunc(limit)
	return cmp.Or(cmp.Compare(i, int64(whole)), cmp.Compare(whole, limit))
}

func (k *Set) bounds(f found) {
	if limit := k.s.Maximum; limit != nil {
		k.inRange(f, "Maximum boundary", *limit)
		switch is := compare(f.value, *limit); {
		case k.s.ExclusiveMaximum && is >= 0:
			f.should("be less than %v", k.limit(f, *limit))
		case is > 0:
			f.should("be less than or equal to %v", k.limit(f, *limit))
		}
	}
	if limit := k.s.Minimum; limit != nil {
		k.inRange(f, "Minimum boundary", *limit)
		switch is := compare(f.value, *limit); {
		case k.s.ExclusiveMinimum && is <= 0:
			f.should("be greater than %v", k.limit(f, *limit))
		case is < 0:
			f.should("be greater than or equal to %v", k.limit(f, *limit))
		}
	}
}

func (k *Set) list(f found, items []any) {
	count := int64(len(items))
	if limit := k.s.MaxItems; limit != nil && count > *limit {
		f.TooMany(f.at, len(items), int(*limit))
	}
	if limit := k.s.MinItems; limit != nil && count < *limit {
		f.counted(k.showsCount, count).should("have at least %d items", *limit)
	}
	if !k.isSet && len(k.keys) == 0 {
		return
	}
	for i, item := range items {
		if _, isObject := item.(map[string]any); !k.isSet && !isObject && item != nil {
			f.Invalid(f.at.Bracketed().Item(i), item, "must be an object for an array of list-type map")
			return // as in Kubernetes
		}
	}
	seen := make(map[string]int, len(items))
	for i, item := range items {
		identity := k.identity(item)
		id := field.Display(identity)
		if seen[id]++; seen[id] == 2 { // reported once per value
			f.Duplicate(f.at.Bracketed().Item(i), identity)
		}
	}
}

// identity returns the part of a list item that identifies it. Null is an object without keys.
func (k *Set) identity(item any) any {
	m, ok := item.(map[string]any)
	if k.isSet || !ok && item != nil {
		return item
	}
	identity := make(map[string]any, len(k.keys))
	for _, key := range k.keys {
		if value, given := m[key]; given {
			identity[key] = value
		}
	}
	return identity
}

func (k *Set) object(f found, m map[string]any) {
	count := int64(len(m))
	if limit := k.s.MaxProperties; limit != nil && count > *limit {
		f.TooMany(f.at, len(m), int(*limit))
	}
	if limit := k.s.MinProperties; limit != nil && count < *limit {
		f.counted(k.showsCount, count).should("have at least %d properties", *limit)
	}
	for _, name := range k.s.Required {
		if _, given := m[name]; !given {
			f.Required(f.at.Field(name), "")
		}
	}
}
