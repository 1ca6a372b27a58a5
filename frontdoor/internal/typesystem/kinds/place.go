package kinds

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
)

// Place returns the path of errors for a field of the object at path at. The receiver is
// nil for a field without rules.
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

// ItemPlace returns the path of errors for an item of a list: that of the list if the field
// overrides it with At.
func (r *Field) ItemPlace(list *field.Path, i int) *field.Path {
	if r.At != "" {
		return list
	}
	return list.Item(i)
}

// EntryPlace is ItemPlace for an entry of a map.
func (r *Field) EntryPlace(dictionary *field.Path, key string) *field.Path {
	if r.At != "" {
		return dictionary
	}
	return dictionary.Entry(key)
}

// None reports whether a value counts as absent.
func (r *Field) None(value any) bool {
	return r != nil && r.ZeroIsNone && value == int64(0)
}

// Why returns the message for a missing required value; "" for the usual one.
func (r *Field) Why() string {
	if r == nil {
		return ""
	}
	return r.Missing
}
