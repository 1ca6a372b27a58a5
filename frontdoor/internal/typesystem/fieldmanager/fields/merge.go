package fields

import "github.com/portico-platform/portico/services/tree"

// Merge returns the object with the configuration merged into it. It shares nothing with
// either. The configuration must have passed Configured. ok is false if the result could
// differ from the library's.
func (t *Type) Merge(live, config map[string]any) (map[string]any, bool) {
	merged, ok := t.merge(live, config)
	object, _ := merged.(map[string]any)
	return object, ok
}

func (t *Type) merge(live, config any) (any, bool) {
	if t.shape == unclear || live == nil || config == nil {
		return nil, false
	}
	if t.shape == scalar || t.atomic {
		return tree.Copy(config), true
	}
	switch c := config.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			return t.mergeObjects(l, c)
		}
	case []any:
		if l, ok := live.([]any); ok {
			return t.mergeLists(l, c)
		}
	}
	return nil, false
}

func (t *Type) mergeObjects(live, config map[string]any) (any, bool) {
	merged := make(map[string]any, max(len(live), len(config)))
	for name, value := range live {
		configured, given := config[name]
		if !given {
			merged[name] = tree.Copy(value)
			continue
		}
		f := t.field(name)
		if f == nil {
			return nil, false
		}
		both, ok := f.merge(value, configured)
		if !ok {
			return nil, false
		}
		merged[name] = both
	}
	for name, value := range config {
		if _, given := live[name]; !given {
			merged[name] = tree.Copy(value)
		}
	}
	return merged, true
}

// mergeLists orders shared and new items as in the configuration. An item that only the
// live list has keeps its position: before the shared item that it preceded.
func (t *Type) mergeLists(live, config []any) (any, bool) {
	liveNames, liveItems, ok := t.names(live)
	if !ok {
		return nil, false
	}
	configs, configItems, ok := t.names(config)
	if !ok {
		return nil, false
	}
	merged := make([]any, 0, max(len(live), len(config)))
	at := 0 // in the live list
	// upTo appends the items that only the live list has, up to one for which ends returns
	// true.
	upTo := func(ends func(name string) bool) {
		for ; at < len(liveNames) && !ends(liveNames[at]); at++ {
			if _, configured := configItems[liveNames[at]]; !configured {
				merged = append(merged, tree.Copy(live[at]))
			}
		}
	}
	shared := func(name string) bool { return liveItems[name] != nil }
	// next[i] is the index of the first shared item at or after item i of the
	// configuration; len(configs) when there is none.
	next := make([]int, len(configs)+1)
	next[len(configs)] = len(configs)
	for i := len(configs) - 1; i >= 0; i-- {
		if next[i] = next[i+1]; shared(configs[i]) {
			next[i] = i
		}
	}
	for i, name := range configs {
		upTo(func(name string) bool { return next[i] < len(configs) && name == configs[next[i]] })
		if !shared(name) {
			merged = append(merged, tree.Copy(config[i]))
			continue
		}
		both, ok := t.item.merge(liveItems[name], config[i])
		if !ok {
			return nil, false
		}
		merged = append(merged, both)
		if at < len(liveNames) {
			at++ // the item that was just merged
		}
	}
	upTo(func(string) bool { return false })
	return merged, true
}
