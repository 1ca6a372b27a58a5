package fields

import "github.com/portico-platform/portico/services/tree"

// Merge returns the object with the configuration merged into it, sharing nothing
// with either. The configuration must be one that Configured has read.
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

// mergeLists keeps the order of the configuration among the items that it names.
// Those that only the live list has stay where they are as far as that goes: each
// before the shared item that it stood before.
func (t *Type) mergeLists(live, config []any) (any, bool) {
	lives, liveItems, ok := t.names(live)
	if !ok {
		return nil, false
	}
	configs, configItems, ok := t.names(config)
	if !ok {
		return nil, false
	}
	merged := make([]any, 0, max(len(live), len(config)))
	at := 0 // in the live list
	// upTo takes what only the live list has, until an item comes that ends it.
	upTo := func(ends func(name string) bool) {
		for ; at < len(lives) && !ends(lives[at]); at++ {
			if _, configured := configItems[lives[at]]; !configured {
				merged = append(merged, tree.Copy(live[at]))
			}
		}
	}
	shared := func(name string) bool { return liveItems[name] != nil }
	// next is, for each item of the configuration, the first one from there on that is
	// shared; len(configs) when there is none.
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
		if at < len(lives) {
			at++ // it is the item itself
		}
	}
	upTo(func(string) bool { return false })
	return merged, true
}
