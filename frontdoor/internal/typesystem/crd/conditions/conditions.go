// Package conditions reads and writes status.conditions. It decides nothing about
// them: which there are and what they say is the caller's. A list of conditions that
// it is given is never modified, because others may hold it. It serves "Common
// object metadata" of the specification.
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

// Set puts a condition in the place of the one of its type. The time of its last
// transition, which is stamp if it has to have one, changes with its status alone.
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

// Drop removes the condition of a type.
func Drop(status map[string]any, kind string) {
	kept := slices.DeleteFunc(slices.Clone(list(status)), func(c any) bool { return kindOf(c) == kind })
	if len(kept) < len(list(status)) {
		status["conditions"] = kept
	}
}

// True reports whether the status of the condition of a type is True.
func True(status map[string]any, kind string) bool {
	i := slices.IndexFunc(list(status), func(c any) bool { return kindOf(c) == kind })
	return i >= 0 && list(status)[i].(map[string]any)["status"] == "True"
}

// Restore gives a status those conditions of certain types that an old one has, and
// no others of these types. Conditions of all other types stay.
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

// kindOf returns the type of a condition; "" for what is none.
func kindOf(c any) string {
	m, _ := c.(map[string]any)
	kind, _ := m["type"].(string)
	return kind
}
