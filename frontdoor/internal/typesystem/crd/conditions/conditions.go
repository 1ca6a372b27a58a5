// Package conditions reads and writes status.conditions. Which conditions there are and
// what they say is the caller's business. It never modifies a given list of conditions,
// because the list may be shared. It serves "Common object metadata" of the specification.
package conditions

import (
	"reflect"
	"slices"

	"github.com/portico-platform/portico/services/tree"
)

// New returns a condition.
func New(kind, state, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": state, "reason": reason, "message": message}
}

// Set adds a condition or replaces the one of its type. lastTransitionTime becomes stamp if
// the status of the condition changes or is new, and is kept otherwise.
func Set(status, c map[string]any, stamp string) {
	conditions := slices.Clone(list(status))
	c["lastTransitionTime"] = stamp
	for i, before := range conditions {
		had, _ := before.(map[string]any)
		if had["type"] != c["type"] {
			continue
		}
		if at, ok := had["lastTransitionTime"]; ok && had["status"] == c["status"] {
			c["lastTransitionTime"] = at
		}
		if !reflect.DeepEqual(had, c) {
			conditions[i] = c
		}
		status["conditions"] = conditions
		return
	}
	status["conditions"] = append(conditions, c)
}

// Drop removes the condition of a type, if there is one.
func Drop(status map[string]any, kind string) {
	kept := slices.DeleteFunc(slices.Clone(list(status)), func(c any) bool { return kindOf(c) == kind })
	if len(kept) < len(list(status)) {
		status["conditions"] = kept
	}
}

// True reports whether the condition of a type has the status True.
func True(status map[string]any, kind string) bool {
	i := slices.IndexFunc(list(status), func(c any) bool { return kindOf(c) == kind })
	return i >= 0 && list(status)[i].(map[string]any)["status"] == "True"
}

// Restore replaces the conditions of the given types in status by those in old. Conditions
// of other types are kept.
func Restore(status, old map[string]any, kinds ...string) {
	before := map[string]any{}
	for _, c := range list(old) {
		if kind := kindOf(c); slices.Contains(kinds, kind) {
			before[kind] = c
		}
	}
	restored := []any{}
	for _, c := range list(status) {
		kind := kindOf(c)
		if !slices.Contains(kinds, kind) {
			restored = append(restored, c)
		} else if is := before[kind]; is != nil {
			restored = append(restored, is)
			delete(before, kind)
		}
	}
	for _, kind := range kinds {
		if is := before[kind]; is != nil {
			restored = append(restored, is)
		}
	}
	if len(restored) > 0 {
		status["conditions"] = restored
	} else {
		delete(status, "conditions")
	}
}

func list(status map[string]any) []any { return tree.List(status, "conditions") }

// kindOf returns the type of a condition; "" if c is not a condition.
func kindOf(c any) string {
	m, _ := c.(map[string]any)
	kind, _ := m["type"].(string)
	return kind
}
