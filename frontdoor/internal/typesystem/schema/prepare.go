package schema

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/scalar"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// preparation is one walk of Prepare over an object.
type preparation struct {
	vocabulary   vocabulary.Vocabulary
	asGiven      bool           // no defaults are set, and nulls are kept
	keepsAll     bool           // unknown fields of custom types are kept
	decodeErrors []string       // of a strict decoder
	patched      bool           // they are those of a patch
	applied      bool           // the object is the result of an apply
	stored       map[string]any // Body.Stored
	unknown      []string       // paths of unknown fields, up to maxNoted
	wrong        []string       // errors of values of a wrong type with their paths, up to maxNoted
	budget       *budget.Budget
	// typed is set within an object all of whose values have been checked by mistyped.
	typed bool
}

// maxNoted limits the errors that are recorded.
const maxNoted = 1000

// addWrongType records a value of a wrong type.
func (p *preparation) addWrongType(at *field.Path, why string) {
	if len(p.wrong) < maxNoted {
		p.wrong = append(p.wrong, at.String()+": "+why)
	}
}

// object prepares an object with declared fields, in place.
func (p *preparation) object(n *node, m map[string]any, at *field.Path) {
	if p.budget.Over() {
		return
	}
	if n.rules != nil && n.rules.Specified != nil {
		n.rules.Rename(m, p.vocabulary)
	}
	if n.custom != nil && n.custom.embedded {
		p.embedded(m, at)
	}
	for name, value := range m {
		f, known := n.fields[name]
		if !known && n.custom != nil && (n.custom.keep || p.keepsAll) {
			continue
		}
		if !known && n.custom == nil && p.stored != nil && reflect.DeepEqual(at.Field(name).In(p.stored), value) {
			continue
		}
		if !known {
			if len(p.unknown) < maxNoted {
				p.unknown = append(p.unknown, at.Field(name).String())
			}
			delete(m, name)
		} else if value == nil && !f.takesNull() && !p.keepsNull(f.node) {
			delete(m, name) // null means absent
		}
	}
	for name, value := range n.present {
		if _, given := m[name]; given {
			continue
		}
		if !p.budget.Add(len(name) + perField) {
			break
		}
		if value == nil {
			value = map[string]any{}
		}
		m[name] = value
	}
	if n.rules != nil {
		if len(n.rules.DeriveFuncs) > 0 && (!p.typed || n.rules.Specified != nil) && !n.typed(m) {
			p.mistyped(n, m, at)
		}
		before, stated := len(m), n.statedEmpty(m, n.rules.Defaults)
		n.rules.Complete(m, p.vocabulary)
		for _, restore := range stated {
			restore()
		}
		p.budget.Add((len(m) - before) * perField)
	}
	if n.custom != nil && !p.asGiven {
		n.custom.complete(n, m, p.budget)
	}
	defer func(typed bool) { p.typed = typed }(p.typed)
	p.typed = p.typed || n.rules != nil && len(n.rules.DeriveFuncs) > 0
	below := field.Path{Parent: at} // one for all fields: it is on the heap, because walks are recursive
	for name, value := range m {
		f := n.fields[name]
		if f == nil {
			continue // a default for a field that the document lacks
		}
		below.Name = name
		if replaced, ok := p.value(f.node, value, &below); ok {
			m[name] = replaced
		}
		if f.omitEmpty && scalar.Empty(value) && (name != "managedFields" || at == nil || at.Parent != nil) {
			delete(m, name) // empty managedFields of the object itself request a reset
		}
	}
	p.show(n, m)
}

// embedded checks the types of what every object has in an embedded one, as in Kubernetes: null is no
// text. In an object that is applied this is done by its field management.
func (p *preparation) embedded(m map[string]any, at *field.Path) {
	if metadata, given := m["metadata"]; given && metadata == nil {
		m["metadata"] = map[string]any{}
	}
	for _, name := range []string{"apiVersion", "kind"} {
		if value, given := m[name]; given && !p.applied {
			if _, isText := value.(string); !isText {
				p.addWrongType(at.Field(name), "Invalid value: "+field.Display(value)+": must be a string")
			}
		}
	}
}

// statedEmpty returns functions that restore the texts that are said to be empty, also in
// objects below that have defaults, so no default replaces them.
func (n *node) statedEmpty(m, defaults map[string]any) (restore []func()) {
	for _, name := range n.stated {
		if value, given := m[name]; given && value == "" {
			restore = append(restore, func() { m[name] = "" })
		}
	}
	for name, value := range defaults {
		below, _ := value.(map[string]any)
		if given, isObject := m[name].(map[string]any); isObject && n.fields[name] != nil {
			restore = append(restore, n.fields[name].statedEmpty(given, below)...)
		}
	}
	return restore
}

// show puts a null where there is nothing in a field that is always shown.
func (p *preparation) show(n *node, m map[string]any) {
	for _, name := range n.null {
		if list, isList := m[name].([]any); (m[name] == nil || isList && len(list) == 0) && p.budget.Add(len(name)+perField) {
			m[name] = nil
		}
	}
}

// perField is the estimated size of a built-in default, in bytes, in the budget.
const perField = 32

// value prepares any value. If ok, the caller has to replace the value by the returned one.
func (p *preparation) value(n *node, value any, at *field.Path) (replaced any, ok bool) {
	if n.custom != nil {
		p.custom(n, value, at)
		return nil, false
	}
	switch n.kind {
	case anything:
		return nil, false
	case object:
		if m, ok := value.(map[string]any); ok {
			p.object(n, m, at)
			return nil, false
		}
	case dictionary:
		if m, ok := value.(map[string]any); ok {
			p.dictionary(n, m, at)
			return nil, false
		}
	case list:
		if items, ok := value.([]any); ok {
			p.list(n, items, at)
			return nil, false
		}
	case quantity:
		return p.quantity(value, at)
	default:
		canonical, why := n.scalar(value)
		if why != "" {
			p.addWrongType(at, why)
			return nil, false
		}
		return canonical, canonical != value
	}
	p.addWrongType(at, scalar.Mismatch(n.kind.String(), value, p.patched, n.kind == dictionary))
	return nil, false
}

func (p *preparation) dictionary(n *node, m map[string]any, at *field.Path) {
	below := field.Path{Parent: at, IsKey: n.custom == nil} // as Kubernetes writes it
	for key := range m {
		below.Name = key
		p.entry(n, m, &below)
	}
}

// entry prepares the value of a map at a key. A null that is not valid there becomes the zero value or
// the default; without one, the entry is dropped.
func (p *preparation) entry(n *node, m map[string]any, at *field.Path) {
	key := at.Name
	if p.replacesNull(n.item, m[key]) {
		if m[key] = p.zero(n.item); m[key] == nil && n.item.kind == timestamp {
			return // a time that is not set
		} else if m[key] == nil {
			delete(m, key)
			return
		}
	}
	if replaced, ok := p.value(n.item, m[key], at); ok {
		m[key] = replaced
	}
}

// replacesNull reports whether a value is a null that is not valid as a value of a map or list.
func (p *preparation) replacesNull(n *node, value any) bool {
	return value == nil && (n.kind != anything || n.custom != nil) && !n.takesNull() && !p.keepsNull(n)
}

// keepsNull reports whether a null that is not valid stays, so that validation reports it: one in an
// object that is applied does in a custom type, unless a default takes its place, as in Kubernetes.
func (p *preparation) keepsNull(n *node) bool {
	return p.asGiven || p.applied && n.custom != nil && n.kind != anything && n.custom.initial == nil
}

func (p *preparation) list(n *node, items []any, at *field.Path) {
	below := field.Path{Parent: at}
	for i, value := range items {
		if p.replacesNull(n.item, value) {
			items[i] = p.zero(n.item)
			value = items[i]
		}
		below.Index = i
		if replaced, ok := p.value(n.item, value, &below); ok {
			items[i] = replaced
		}
	}
}

// quantity parses a quantity, which may be a JSON number, and returns its canonical form.
// Quantities in maps, which are amounts of resources, are rounded up to thousandths.
func (p *preparation) quantity(value any, at *field.Path) (any, bool) {
	canonical, why := scalar.Quantity(value, at.IsKey)
	if why != "" {
		p.addWrongType(at, why)
		return nil, false
	}
	return canonical, canonical != value
}

// scalar returns the canonical form of a value (integers without a fraction, times in UTC),
// or why its type is wrong.
func (n *node) scalar(value any) (canonical any, why string) {
	ok := false
	canonical = value
	switch n.kind {
	case text:
		_, ok = value.(string)
	case boolean:
		_, ok = value.(bool)
	case number:
		switch value.(type) {
		case int64, float64:
			ok = true
		}
	case integer, intOrString:
		if _, isText := value.(string); isText && n.kind == intOrString {
			return value, ""
		}
		var i int64
		if i, ok = rules.Whole(value); ok && n.bits == 32 && (i > math.MaxInt32 || i < math.MinInt32) {
			return nil, fmt.Sprintf("%d does not fit in 32 bits", i)
		}
		if _, fraction := value.(float64); fraction {
			canonical = i
		}
	case timestamp, microTime, binary:
		if s, isText := value.(string); isText {
			return encodings[n.kind](s)
		}
	}
	if ok {
		return canonical, ""
	}
	return nil, "expected " + n.kind.String() + ", got " + scalar.Describe(value)
}

// encodings parse values that are encoded as strings and return their canonical form.
var encodings = map[kind]func(string) (any, string){timestamp: scalar.Time, microTime: scalar.MicroTime, binary: scalar.Binary}

// zero returns the value that replaces a null where null is not valid, up to the limit of
// the budget.
func (p *preparation) zero(n *node) any {
	if n.custom != nil {
		if !p.budget.Add(n.custom.initialSize) {
			return nil
		}
		return tree.Copy(n.custom.initial)
	}
	switch n.kind {
	case object, dictionary:
		return map[string]any{}
	case list:
		return []any{}
	case text, binary:
		return ""
	case integer, intOrString, number:
		return int64(0)
	case boolean:
		return false
	case quantity:
		return "0"
	}
	return nil
}

// String returns the kind in the form of messages.
func (k kind) String() string {
	return [...]string{"anything", "an object", "an object", "a list", "a string", "an integer", "a number", "a boolean",
		"an integer or string", "a quantity", "a time", "a time", "base64 text"}[k]
}

// wrongType returns the first error of a value of a wrong type; "" for none.
func (p *preparation) wrongType() string {
	if len(p.wrong) == 0 {
		return ""
	}
	return slices.Min(p.wrong)
}

// opaque reports whether a field of a built-in type is inside of a value that it does not
// describe, such as the data of a ControllerRevision.
func (n *node) opaque(path []string) bool {
	for _, name := range path {
		switch {
		case n.kind == anything && n.custom == nil:
			return true
		case n.kind == object && n.fields[name] != nil:
			n = n.fields[name].node
		case n.item != nil:
			n = n.item
		default:
			return false
		}
	}
	return false
}
