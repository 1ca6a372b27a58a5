package verdict

import (
	"fmt"
	"slices"
)

// discovery are the kinds of documents whose lists are compared by name: an item that only one
// server has does not change the positions of the others.
var discovery = []any{"APIVersions", "APIGroup", "APIGroupList", "APIGroupDiscoveryList", "APIResourceList"}

// isDiscovery reports whether a response is a discovery document.
func isDiscovery(answer map[string]any) bool {
	body, _ := answer["body"].(map[string]any)
	return slices.Contains(discovery, body["kind"])
}

// compareNamed compares two lists by the names of their items, and then the order of the
// items that both have. It reports whether it did: it does not if an item has no name or the
// name of another.
func (w walk) compareNamed(path string, portico, peer []any) bool {
	a, ourOrder, ok := byName(portico)
	b, theirOrder, alsoOK := byName(peer)
	if !ok || !alsoOK {
		return false
	}
	for _, name := range keys(a, b) {
		w.compare(path+"["+name+"]", field(a, name), field(b, name))
	}
	only := func(in map[string]any) func(string) bool {
		return func(name string) bool { _, known := in[name]; return !known }
	}
	ourOrder, theirOrder = slices.DeleteFunc(ourOrder, only(b)), slices.DeleteFunc(theirOrder, only(a))
	if !slices.Equal(ourOrder, theirOrder) {
		w.found(path+".order", ourOrder, theirOrder)
	}
	return true
}

// byName returns the items of a list by name, and the names in order.
func byName(list []any) (items map[string]any, order []string, ok bool) {
	items = map[string]any{}
	for _, one := range list {
		name := nameOf(one)
		if _, taken := items[name]; taken || name == "" {
			return nil, nil, false
		}
		items[name], order = one, append(order, name)
	}
	return items, order, true
}

// nameOf returns the name of a group, a version or a resource in a discovery document, or the
// text itself, such as a verb; empty if there is none.
func nameOf(item any) string {
	object, isObject := item.(map[string]any)
	if !isObject {
		return fmt.Sprint(item)
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		if _, core := meta["name"]; !core {
			return "core"
		}
		object = meta
	}
	for _, key := range []string{"name", "resource", "subresource", "version"} {
		if name, ok := object[key].(string); ok {
			return name
		}
	}
	return ""
}
