package merge

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/tree"
)

// appliedAlready tells, at a fraction of the cost of an apply, that it would
// change nothing: the manager owns exactly the fields of the configuration, and
// the live object holds its values. Whoever had changed one of them would have
// taken it over. It reads the recorded fields as they stand, without the type's
// schema. A no is not certain.
func (e *Engine) appliedAlready(r PatchRequest, live, config map[string]any) bool {
	owned := entryOf(ownersOf(live), applierKey(r))
	if owned == nil || owned["apiVersion"] != r.Type.APIVersion() {
		return false
	}
	fields, _ := owned["fieldsV1"].(map[string]any)
	return heldTop(live, config, fields)
}

// heldTop is heldObject for a whole object: nobody owns what names it.
func heldTop(live, config, fields map[string]any) bool {
	metadata, _ := config["metadata"].(map[string]any)
	ownMetadata, _ := fields["f:metadata"].(map[string]any)
	liveMetadata, _ := live["metadata"].(map[string]any)
	return heldObject(liveMetadata, without(metadata, identityFields...), ownMetadata) &&
		heldObject(live, without(config, "apiVersion", "kind", "metadata"), without(fields, "f:metadata"))
}

// held tells whether a live value has the configured one, and the fields that are
// recorded for it are those that the configuration names.
func held(live, config any, fields map[string]any) bool {
	if len(fields) == 0 {
		return holds(live, config) // owned as a whole
	}
	switch c := config.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		return ok && heldObject(l, c, fields)
	case []any:
		l, ok := live.([]any)
		return ok && heldList(l, c, fields)
	}
	return false
}

func heldObject(live, config, fields map[string]any) bool {
	if len(config) != members(fields) {
		return false
	}
	for name, value := range config {
		below, ok := fields["f:"+name].(map[string]any)
		current, given := live[name]
		if !ok || !given || !held(current, value, below) {
			return false
		}
	}
	return true
}

// heldList finds each configured item in the live list, in the same order, and
// among the recorded ones.
func heldList(live, config []any, fields map[string]any) bool {
	if len(config) != members(fields) {
		return false
	}
	keys := itemKeys(fields)
	next := 0
	for _, item := range config {
		below, ok := keys.find(item)
		if !ok {
			return false
		}
		i := slices.IndexFunc(live[next:], func(l any) bool { return held(l, item, below) })
		if i < 0 {
			return false
		}
		next += i + 1
	}
	return true
}

// members counts the recorded fields below one; the dot is itself.
func members(fields map[string]any) int {
	if _, self := fields["."]; self {
		return len(fields) - 1
	}
	return len(fields)
}

// recordedItem is an item of a list as it is recorded: by its key fields or by its
// value, with the fields below it.
type recordedItem struct {
	key    any
	fields map[string]any
}

type recordedItems []recordedItem

// itemKeys reads the recorded items of a list.
func itemKeys(fields map[string]any) recordedItems {
	items := make(recordedItems, 0, len(fields))
	for name, below := range fields {
		kind, encoded, _ := strings.Cut(name, ":")
		var key any
		if kind != "k" && kind != "v" || json.Unmarshal([]byte(encoded), &key) != nil {
			continue
		}
		children, _ := below.(map[string]any)
		items = append(items, recordedItem{key, children})
	}
	return items
}

// find returns the fields recorded for an item. A key field that the item leaves
// out has its default.
func (items recordedItems) find(item any) (map[string]any, bool) {
	for _, recorded := range items {
		if recorded.is(item) {
			return without(recorded.fields, "."), true
		}
	}
	return nil, false
}

func (r recordedItem) is(item any) bool {
	key, isKey := r.key.(map[string]any)
	m, isObject := item.(map[string]any)
	if !isKey || !isObject {
		return !isKey && !isObject && sameScalar(r.key, item)
	}
	matched := false
	for name, value := range key {
		given, ok := m[name]
		if ok && !sameScalar(value, given) {
			return false
		}
		matched = matched || ok
	}
	return matched
}

// sameScalar compares a scalar that was decoded without care for integers.
func sameScalar(recorded, value any) bool {
	if f, ok := recorded.(float64); ok {
		if i, ok := value.(int64); ok {
			return f == float64(i)
		}
	}
	return tree.Equal(recorded, value)
}

// holds tells whether a live value has all of a configured one. Lists are compared
// item by item.
func holds(live, config any) bool {
	switch c := config.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range c {
			current, given := l[name]
			if !given || !holds(current, value) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		return ok && slices.EqualFunc(l, c, holds)
	}
	return tree.Equal(live, config)
}

// without returns the map itself, or a copy that lacks some members.
func without(m map[string]any, names ...string) map[string]any {
	if !slices.ContainsFunc(names, func(name string) bool { _, has := m[name]; return has }) {
		return m
	}
	left := make(map[string]any, len(m))
	for name, value := range m {
		if !slices.Contains(names, name) {
			left[name] = value
		}
	}
	return left
}

// entryOf returns the entry of one manager, nil when there is none.
func entryOf(list []any, key string) map[string]any {
	i := slices.IndexFunc(list, func(item any) bool {
		entry, _ := item.(map[string]any)
		return entry != nil && entryIdentity(entry).key() == key
	})
	if i < 0 {
		return nil
	}
	return list[i].(map[string]any)
}

// Settle keeps the entries of the live object when the next one differs from it
// in nothing but the times of its entries: a write that changes nothing after all,
// once defaults are applied.
func Settle(live, next map[string]any) {
	before, after := ownersOf(live), ownersOf(next)
	if live == nil || len(before) != len(after) || !sameContent(live, next) {
		return
	}
	for i := range before {
		if !tree.Equal(timeless(before[i]), timeless(after[i])) {
			return
		}
	}
	setOwners(next, copyOf(before))
}

// timeless returns an entry without its time.
func timeless(item any) any {
	entry, _ := item.(map[string]any)
	return without(entry, "time")
}
