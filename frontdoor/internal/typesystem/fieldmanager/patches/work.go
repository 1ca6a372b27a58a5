package patches

import (
	"slices"
	"strings"
)

// maxCompared is the limit on the pairs of list items that a strategic merge may compare:
// the library looks through the whole list for each item of a patch, which takes up to a
// second for as many.
const maxCompared = 20_000_000

// estimate is what merging a patch costs.
type estimate struct {
	lengths map[string]int // of the longest list of each field
	left    int            // of maxCompared
}

// affordable reports whether a strategic merge stays within maxCompared. It assumes that
// the lists of a field are all as long as the longest one.
func affordable(current, patch map[string]any, at position) bool {
	e := estimate{map[string]int{}, maxCompared}
	e.measure(current)
	return e.object(patch, at)
}

// measure notes the length of the longest list of each field.
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

// directives are what a patch says about a list beside it.
var directives = [...]string{"$setElementOrder/", "$deleteFromPrimitiveList/"}

// object takes what merging an object of the patch costs from what is left, and reports
// whether that was enough.
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
