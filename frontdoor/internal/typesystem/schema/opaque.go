package schema

import (
	"slices"
	"strconv"
	"strings"
)

// described returns the findings of the decoder without those inside of values that a built-in
// type does not describe, such as the data of a ControllerRevision.
func described(root *node, findings []string) []string {
	return slices.DeleteFunc(slices.Clone(findings), func(finding string) bool {
		path, err := strconv.Unquote(strings.TrimPrefix(finding, "duplicate field "))
		return err == nil && root.describesNot(path)
	})
}

// describesNot reports whether a field is inside of a value whose schema allows anything.
func (n *node) describesNot(path string) bool {
	for _, name := range strings.FieldsFunc(path, func(c rune) bool { return strings.ContainsRune(".[]", c) }) {
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
