package corpus

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

const (
	// maxDepth bounds the depth of the tested fields.
	maxDepth = 12
	// maxKinds is the number of kinds in which the fields of a definition are tested: the
	// second kind reveals behaviour that depends on the position of the definition.
	maxKinds = 2
)

// field is one field of a kind.
type field struct {
	path   []string        // names; "[]" is the first item of a list, "{}" a value of a map
	raw    *openapi.Schema // as in the document, maybe a reference
	schema *openapi.Schema // the resolved schema
	enum   []any
}

func (f *field) String() string { return strings.Join(f.path, ".") }

// walker finds the fields that both servers have.
type walker struct {
	portico, peer *openapi.Document
	// visits counts the kinds in which the fields of a definition were found.
	visits map[string]int
}

// fields returns the fields of a kind below a top-level field such as "spec".
func (w *walker) fields(k *Kind, top string) (all []field) {
	ours, theirs := w.portico.Of(k.Kind), w.peer.Of(k.Kind)
	if ours == nil || theirs == nil || ours.Properties[top] == nil || theirs.Properties[top] == nil {
		return nil
	}
	v := visit{walker: w, within: map[string]bool{}}
	v.field([]string{top}, ours.Properties[top], theirs.Properties[top])
	for name := range v.within {
		w.visits[name]++
	}
	return v.found
}

// visit is a walk through the fields of one kind.
type visit struct {
	*walker
	within map[string]bool // definitions visited by the walk
	found  []field
}

func (v *visit) field(path []string, ours, theirs *openapi.Schema) {
	name := ""
	if ours.Ref != "" {
		name = ours.Name()
	}
	s, other := v.portico.Resolve(ours), v.peer.Resolve(theirs)
	if s == nil || other == nil {
		return
	}
	v.found = append(v.found, field{path: slices.Clone(path), raw: ours, schema: s, enum: other.Enum})
	if len(path) >= maxDepth || name != "" && (v.within[name] || v.visits[name] >= maxKinds) {
		return
	}
	if name != "" {
		v.within[name] = true
	}
	for _, property := range s.Fields() {
		if theirs := other.Properties[property]; theirs != nil {
			v.field(append(path, property), s.Properties[property], theirs)
		}
	}
	if s.Items != nil && other.Items != nil && v.structured(s.Items) {
		v.field(append(path, "[]"), s.Items, other.Items)
	}
	if s.AdditionalProperties != nil && other.AdditionalProperties != nil && v.structured(s.AdditionalProperties) {
		v.field(append(path, "{}"), s.AdditionalProperties, other.AdditionalProperties)
	}
}

// structured reports whether a value has fields of its own.
func (w *walker) structured(s *openapi.Schema) bool {
	s = w.portico.Resolve(s)
	return s != nil && (len(s.Properties) > 0 || s.Items != nil)
}

// set returns a copy of an object with a field set. Missing parents are created with their
// required fields.
func (w *walker) set(o object, k *Kind, f field, value any) object {
	out := clone(o)
	w.put(out, w.portico.Of(k.Kind), f.path, value)
	return out
}

// put sets a field and returns the value that contains it.
func (w *walker) put(at any, s *openapi.Schema, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	s = w.portico.Resolve(s)
	switch path[0] {
	case "[]":
		list, _ := at.([]any)
		if len(list) == 0 {
			list = []any{w.sample("", s.Items)}
		}
		list[0] = w.put(list[0], s.Items, path[1:], value)
		return list
	case "{}":
		o, _ := at.(object)
		if o == nil {
			o = object{}
		}
		o["a"] = w.put(w.sample("", s.AdditionalProperties), s.AdditionalProperties, path[1:], value)
		return o
	}
	o, ok := at.(object)
	if !ok {
		o, _ = w.sample("", s).(object)
	}
	if o == nil {
		o = object{}
	}
	o[path[0]] = w.put(o[path[0]], s.Properties[path[0]], path[1:], value)
	return o
}
