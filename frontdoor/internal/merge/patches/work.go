package patches

import "strings"

// maxCompared is the limit on the pairs of list items that a strategic merge may compare:
// the library looks through the whole list for each item of a patch, which takes up to a
// second for as many.
const maxCompared = 20_000_000

// affordable reports whether a strategic merge stays within maxCompared. It assumes that
// the lists of a field are all as long as the longest one.
func affordable(current, patch map[string]any, at position) bool {
	lengths := map[string]int{}
	measure(current, lengths)
	left := maxCompared
	return afford(patch, at, lengths, &left)
}

// measure notes the length of the longest list of each field.
func measure(value any, lengths map[string]int) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if list, ok := below.([]any); ok {
				lengths[name] = max(lengths[name], len(list))
			}
			measure(below, lengths)
		}
	case []any:
		for _, item := range v {
			measure(item, lengths)
		}
	}
}

// directives are what a patch says about a list beside it.
var directives = [...]string{"$setElementOrder/", "$deleteFromPrimitiveList/"}

// afford takes what merging a patch costs from what is left.
func afford(patch map[string]any, at position, lengths map[string]int, left *int) bool {
	for name, value := range patch {
		for _, directive := range directives {
			name = strings.TrimPrefix(name, directive)
		}
		switch v := value.(type) {
		case map[string]any:
			if !afford(v, position{at.definitions, at.field(name)}, lengths, left) {
				return false
			}
		case []any:
			if !affordList(name, v, at, lengths, left) {
				return false
			}
		}
	}
	return true
}

func affordList(name string, list []any, at position, lengths map[string]int, left *int) bool {
	below, meta, _ := at.LookupPatchMetadataForSlice(name)
	merges := false
	for _, strategy := range meta.GetPatchStrategies() {
		merges = merges || strategy == "merge"
	}
	if !merges {
		return true // the list is replaced
	}
	if *left -= len(list) * (len(list) + lengths[name]); *left < 0 {
		return false
	}
	items, _ := below.(position)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && !afford(m, items, lengths, left) {
			return false
		}
	}
	return true
}
