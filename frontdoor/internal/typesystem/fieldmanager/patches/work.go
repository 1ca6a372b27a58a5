package patches

import (
	"slices"
	"strings"
)

// maxCompared limits the pairs of list items that a strategic merge may compare: the
// library searches the whole list for each item of a patch, which takes up to a second at
// this limit.
const maxCompared = 20_000_000

// estimate is an estimate of the cost of a merge.
type estimate struct {
	lengths map[string]int // of the longest list of each field
	left    int            // of maxCompared
}

// affordable reports whether a strategic merge stays within maxCompared. It assumes that
// all lists of a field have the length of the longest one.
func affordable(current, patch map[string]any, at position) bool {
	e := estimate{map[string]int{}, maxCompared}
	e.measure(current)
	return e.object(patch, at)
}

// measure records the length of the longest list of each field.
func (e *estimate) measure(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if list, ok := below.([]any); ok {
				e.lengths[name] = max(e.lengths[name], len(list))
			}
			e.measure(below)
		}
	case []any:
		for _, item := range v {
			e.measure(item)
		}
	}
}

// directives are the prefixes of members that refer to a list beside them.
var directives = [...]string{"$setElementOrder/", "$deleteFromPrimitiveList/"}

// object subtracts the cost of merging an object of the patch from left, and reports
// whether left stays positive.
func (e *estimate) object(patch map[string]any, at position) bool {
	for name, value := range patch {
		for _, directive := range directives {
			name = strings.TrimPrefix(name, directive)
		}
		enough := true
		switch v := value.(type) {
		case map[string]any:
			enough = e.object(v, position{at.definitions, at.field(name)})
		case []any:
			enough = e.list(name, v, at)
		}
		if !enough {
			return false
		}
	}
	return true
}

func (e *estimate) list(name string, list []any, at position) bool {
	below, meta, _ := at.LookupPatchMetadataForSlice(name)
	if !slices.Contains(meta.GetPatchStrategies(), "merge") {
		return true // the list is replaced
	}
	if e.left -= len(list) * (len(list) + e.lengths[name]); e.left < 0 {
		return false
	}
	items, _ := below.(position)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && !e.object(m, items) {
			return false
		}
	}
	return true
}
