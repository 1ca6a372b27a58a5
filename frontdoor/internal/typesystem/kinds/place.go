package kinds

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
)

// Place returns where mistakes in a field of the object at are reported. A field
// without rules has no place of its own.
func (r *Field) Place(at *field.Path, name string) *field.Path {
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

// ItemPlace is where mistakes in an item of a list are reported; a list with a place
// of its own tells nothing of its items.
func (r *Field) ItemPlace(list *field.Path, i int) *field.Path {
	if r.At != "" {
		return list
	}
	return list.Item(i)
}

// EntryPlace is itemPlace for an entry of a dictionary.
func (r *Field) EntryPlace(dictionary *field.Path, key string) *field.Path {
	if r.At != "" {
		return dictionary
	}
	return dictionary.Entry(key)
}

// None reports whether a value counts as not given.
func (r *Field) None(value any) bool {
	return r != nil && r.ZeroIsNone && value == int64(0)
}

// Why says why a value is required; "" where that goes without saying.
func (r *Field) Why() string {
	if r == nil {
		return ""
	}
	return r.Missing
}
