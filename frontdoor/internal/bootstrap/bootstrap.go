// Package bootstrap defines the objects that every cluster starts with: the system
// namespaces, the default roles and bindings, the two system priority classes, and the
// flow control configuration. Roles are data in policy/*.yaml, flow control in
// fairness.yaml. It returns the objects in the order in which they can be created; the
// caller creates them. It serves section "Authorization notes" and the list of built-in
// names of the specification.
package bootstrap

import (
	"slices"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Objects returns the objects of a release in the order of their creation, with the names
// of the vocabulary. on reports whether a feature is on; nil means that no alpha feature is. The caller
// may modify the objects.
func Objects(v vocabulary.Vocabulary, r release.Release, on func(feature string) bool) ([]map[string]any, error) {
	objects := namespaces(v)
	roles, err := policy(v, target{r, on})
	if err != nil {
		return nil, err
	}
	fair, err := Fairness(v, r)
	if err != nil {
		return nil, err
	}
	objects = slices.Concat(objects, roles, priorityClasses(v))
	for _, f := range fair {
		objects = append(objects, f.Object)
	}
	return objects, nil
}

func namespaces(v vocabulary.Vocabulary) []map[string]any {
	names := []string{"default", v.Namespace("system"), v.Namespace("public"), v.Namespace("node-lease")}
	objects := make([]map[string]any, len(names))
	for i, name := range names {
		objects[i] = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
	}
	return objects
}

// priorityClasses returns the classes that only system pods may use. Their values exceed
// the maximum of user-defined classes.
func priorityClasses(v vocabulary.Vocabulary) []map[string]any {
	class := func(name string, value int64, about string) map[string]any {
		return map[string]any{
			"apiVersion": v.Group("scheduling.") + "/v1", "kind": "PriorityClass",
			"metadata": map[string]any{"name": name}, "value": value, "description": about,
		}
	}
	return []map[string]any{
		class("system-cluster-critical", 2_000_000_000, "for pods that the cluster needs to work, on whichever node"),
		class("system-node-critical", 2_000_001_000, "for pods that their node needs to work"),
	}
}
