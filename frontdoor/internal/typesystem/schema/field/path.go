// Package field holds paths of fields in the form that clients expect, and collects the
// causes of a Status. It serves "Errors" of the specification.
package field

import "strconv"

// Path is the path of a value, as a linked list from the value to the root. Walks use one for
// all parts of a value, so who receives it must not keep it, and format it only for errors. nil is the root.
type Path struct {
	Parent *Path
	Name   string // of a field, or key of a map; empty for an item of a list
	Index  int    // of an item of a list
	IsKey  bool   // Name is the key of a map, in brackets
	InMap  bool   // Name is the key of a map, for Bracketed; at the root it has a dot, as in Kubernetes
}

// String returns the path in the form of messages: spec.containers[0].name.
func (p *Path) String() string {
	if p == nil {
		return ""
	}
	return string(p.append(make([]byte, 0, 64)))
}

// append appends the path to one buffer: a string per level would be quadratic in depth.
func (p *Path) append(b []byte) []byte {
	if p == nil {
		return b
	}
	b = p.Parent.append(b)
	switch {
	case p.IsKey:
		b = append(append(append(b, '['), p.Name...), ']')
	case p.Name == "":
		b = append(strconv.AppendInt(append(b, '['), int64(p.Index), 10), ']')
	case len(b) == 0 && !p.InMap:
		b = append(b, p.Name...)
	default:
		b = append(append(b, '.'), p.Name...)
	}
	return b
}

// Bracketed returns the path with the keys of maps in brackets, as errors about lists in maps of custom
// types have it.
func (p *Path) Bracketed() *Path {
	if p == nil {
		return nil
	}
	own := *p
	own.Parent, own.IsKey = p.Parent.Bracketed(), p.IsKey || p.InMap
	return &own
}

// Field returns the path of a field below p.
func (p *Path) Field(name string) *Path { return &Path{Parent: p, Name: name} }

// Item returns the path of an item of the list p.
func (p *Path) Item(i int) *Path { return &Path{Parent: p, Index: i} }

// Entry returns the path of an entry of the map p.
func (p *Path) Entry(key string) *Path { return &Path{Parent: p, Name: key, IsKey: true} }

// In returns the value at the path in an object; nil for none.
func (p *Path) In(object map[string]any) any {
	if p == nil {
		return object
	}
	switch parent := p.Parent.In(object).(type) {
	case map[string]any:
		return parent[p.Name]
	case []any:
		if p.Name == "" && p.Index < len(parent) {
			return parent[p.Index]
		}
	}
	return nil
}
