package schema

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
)

// place returns where mistakes in a field of the object at are reported. A field
// without rules has no place of its own.
func (r *fieldRules) place(at *field.Path, name string) *field.Path {
	if r == nil || r.At == "" {
		return &field.Path{Parent: at, Name: name}
	}
	for part := range strings.SplitSeq(r.At, "/") {
		switch part {
		case ".":
		case "..":
			at = at.Parent
		default:
			at = at.Field(part)
		}
	}
	return at
}

// itemPlace is where mistakes in an item of a list are reported; a list with a place
// of its own tells nothing of its items.
func (r *fieldRules) itemPlace(list *field.Path, i int) *field.Path {
	if r.At != "" {
		return list
	}
	return list.Item(i)
}

// entryPlace is itemPlace for an entry of a dictionary.
func (r *fieldRules) entryPlace(dictionary *field.Path, key string) *field.Path {
	if r.At != "" {
		return dictionary
	}
	return dictionary.Entry(key)
}

// none tells whether a value counts as not given.
func (r *fieldRules) none(value any) bool {
	return r != nil && r.ZeroIsNone && value == int64(0)
}

func (r *fieldRules) missing() string {
	if r == nil {
		return ""
	}
	return r.Missing
}

// blank is what an empty value is checked as; nil is one that is left out.
func (f *member) blank(value any) any {
	switch {
	case value != nil:
		return value
	case f.kind == integer, f.kind == intOrString:
		return int64(0)
	}
	return ""
}
