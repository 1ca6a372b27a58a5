package autoupdate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/portico-platform/portico/services/tree"
)

// complete adds the missing labels, annotations, rules and subjects of its default to a
// stored object, and reports whether any were missing. Those that users have added stay.
// The stored object is modified only if the result is true.
//
// Objects whose annotation optOut is "false" are never changed.
func complete(stored, desired map[string]any, optOut string) bool {
	annotations, _ := tree.Object(stored, "metadata")["annotations"].(map[string]any)
	if annotations[optOut] == "false" {
		return false
	}
	changed := false
	for _, field := range []string{"labels", "annotations"} {
		changed = addMissing(tree.Object(stored, "metadata"), tree.Object(desired, "metadata"), field) || changed
	}
	if desired["roleRef"] != nil {
		return completeBinding(stored, desired) || changed
	}
	changed = completeAggregation(stored, desired) || changed
	return completeRules(stored, desired) || changed
}

// addMissing adds the missing entries to a map of strings.
func addMissing(stored, desired map[string]any, field string) (changed bool) {
	entries, _ := desired[field].(map[string]any)
	for key, value := range entries {
		if _, ok := tree.Object(stored, field)[key]; !ok {
			tree.Object(stored, field)[key] = value
			changed = true
		}
	}
	return changed
}

// completeBinding adds missing subjects. A binding with another roleRef is reset to the
// default, without its subjects: they were granted the other role.
func completeBinding(stored, desired map[string]any) bool {
	if !equality.Semantic.DeepEqual(stored["roleRef"], desired["roleRef"]) {
		stored["roleRef"] = desired["roleRef"]
		delete(stored, "subjects")
		if subjects := tree.List(desired, "subjects"); len(subjects) > 0 {
			stored["subjects"] = slices.Clone(subjects)
		}
		return true
	}
	subjects := slices.Clone(tree.List(stored, "subjects"))
	for _, subject := range tree.List(desired, "subjects") {
		if !holds(subjects, subject) {
			subjects = append(subjects, subject)
		}
	}
	if len(subjects) == len(tree.List(stored, "subjects")) {
		return false
	}
	stored["subjects"] = subjects
	return true
}

// completeAggregation adds missing selectors. It removes the selectors of a role that has
// none by default: otherwise it would have the rules of any role with a matching label. Its
// stored rules, which are a copy of those, go with them.
func completeAggregation(stored, desired map[string]any) bool {
	if desired["aggregationRule"] == nil {
		had := stored["aggregationRule"] != nil
		if had {
			delete(stored, "aggregationRule")
			delete(stored, "rules")
		}
		return had
	}
	rule := tree.Object(stored, "aggregationRule")
	selectors := slices.Clone(tree.List(rule, "clusterRoleSelectors"))
	for _, selector := range tree.List(tree.Object(desired, "aggregationRule"), "clusterRoleSelectors") {
		if !holds(selectors, selector) {
			selectors = append(selectors, selector)
		}
	}
	if len(selectors) == len(tree.List(rule, "clusterRoleSelectors")) {
		return false
	}
	rule["clusterRoleSelectors"] = selectors
	return true
}

// completeRules adds the default rules that the stored ones do not cover completely.
func completeRules(stored, desired map[string]any) bool {
	rules := slices.Clone(tree.List(stored, "rules"))
	for _, rule := range tree.List(desired, "rules") {
		if rule, ok := rule.(map[string]any); ok && !covered(rules, rule) {
			rules = append(rules, rule)
		}
	}
	if len(rules) == len(tree.List(stored, "rules")) {
		return false
	}
	stored["rules"] = rules
	return true
}

// covered reports whether rules together allow all that one rule allows.
func covered(rules []any, rule map[string]any) bool {
	names := tree.Texts(rule, "resourceNames")
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range tree.Texts(rule, "verbs") {
		for _, path := range tree.Texts(rule, "nonResourceURLs") {
			if !anyAllows(rules, func(r map[string]any) bool { return includes(r, "verbs", verb) && includesPath(r, path) }) {
				return false
			}
		}
		for _, group := range tree.Texts(rule, "apiGroups") {
			for _, resource := range tree.Texts(rule, "resources") {
				for _, name := range names {
					if !anyAllows(rules, func(r map[string]any) bool {
						return includes(r, "verbs", verb) && includes(r, "apiGroups", group) && includes(r, "resources", resource) &&
							(len(tree.Texts(r, "resourceNames")) == 0 || slices.Contains(tree.Texts(r, "resourceNames"), name))
					}) {
						return false
					}
				}
			}
		}
	}
	return true
}

func anyAllows(rules []any, allows func(map[string]any) bool) bool {
	return slices.ContainsFunc(rules, func(r any) bool {
		rule, ok := r.(map[string]any)
		return ok && allows(rule)
	})
}

// includes reports whether a list of a rule contains a value or the wildcard.
func includes(rule map[string]any, field, value string) bool {
	named := tree.Texts(rule, field)
	return slices.Contains(named, "*") || slices.Contains(named, value)
}

func includesPath(rule map[string]any, path string) bool {
	return slices.ContainsFunc(tree.Texts(rule, "nonResourceURLs"), func(allowed string) bool {
		stem, open := strings.CutSuffix(allowed, "*")
		return allowed == path || open && strings.HasPrefix(path, stem)
	})
}

func holds(items []any, desired any) bool {
	return slices.ContainsFunc(items, func(item any) bool { return equality.Semantic.DeepEqual(item, desired) })
}
