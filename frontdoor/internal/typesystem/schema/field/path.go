// Package field says where in an object something is wrong, and what: paths as
// clients know them, and the causes of a Status. It decides nothing. It serves
// "Errors" of the specification.
package field

import "strconv"

// Path is where a walk is, as a chain from the value to the root; it lives on the
// stack and is written out only when there is something to report. nil is the root.
type Path struct {
	Parent *Path
	Name   string // of a field, or key of a map; empty for an item of a list
	Index  int    // of an item of a list
	IsKey  bool   // Name is the key of a map
}

// String writes the path as clients know it: spec.containers[0].name.
func (p *Path) String() string {
	if p == nil {
		return ""
	}
	return string(p.append(make([]byte, 0, 64)))
}

// append writes the path in one go: a string per level would be quadratic in depth.
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
	case len(b) == 0:
		b = append(b, p.Name...)
	default:
		b = append(append(b, '.'), p.Name...)
	}
	return b
}

// Field is the path of a field below p.
func (p *Path) Field(name string) *Path { return &Path{Parent: p, Name: name} }

// Item is the path of an item of the list p.
func (p *Path) Item(i int) *Path { return &Path{Parent: p, Index: i} }

// Entry is the path of an entry of the map p.
func (p *Path) Entry(key string) *Path { return &Path{Parent: p, Name: key, IsKey: true} }
