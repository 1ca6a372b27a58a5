package rbac

import (
	"fmt"
	"slices"
	"strings"
)

// maxRuleText bounds the description of a rule, in bytes: whoever writes a role chooses its size.
const maxRuleText = 500

// String describes the rule. The text is composed at the first call.
func (r *Rule) String() string {
	if text := r.text.Load(); text != nil {
		return *text
	}
	text := r.describe()
	r.text.Store(&text)
	return text
}

func (r *Rule) describe() string {
	list := func(values []string) string { return "[" + strings.Join(values, " ") + "]" }
	text := "verbs " + list(r.Verbs)
	if len(r.NonResourceURLs) > 0 {
		text += " on paths " + list(r.NonResourceURLs)
	}
	if len(r.Resources) > 0 {
		text += " on resources " + list(r.Resources) + " in groups " + list(r.APIGroups)
	}
	if len(r.ResourceNames) > 0 {
		text += " named " + list(r.ResourceNames)
	}
	if len(text) > maxRuleText {
		text = strings.ToValidUTF8(text[:maxRuleText], "") + "..."
	}
	return text
}

// nearest describes the rule of the user that covers most of a denied request, and what it does
// not cover; empty if no rule covers the resource or path.
func (x *Index) nearest(q *question) string {
	var best *Rule
	var lacking []string
	var by *grant
	x.visit(q.User, q.Namespace, func(g *grant) bool {
		rules, _ := x.rules(g.binding.role)
		for _, rule := range rules {
			lacks := rule.lacks(q)
			if lacks != nil && (best == nil || len(lacks) < len(lacking)) {
				best, lacking, by = rule, lacks, g
			}
		}
		return true
	})
	if best == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s does not cover the %s", by.reason(), best, strings.Join(lacking, " and the "))
}

// lacks returns what of a request a rule does not cover that covers its resource or path; nil for
// other rules.
func (r *Rule) lacks(q *question) (list []string) {
	if q.Path != "" {
		if r.coversPath(q.Path) {
			return []string{"verb"} // or it would be allowed, unless the binding is of a namespace
		}
		return nil
	}
	if !r.coversResource(q) {
		return nil
	}
	if !has(r.APIGroups, q.Group) {
		list = append(list, "API group")
	}
	if !has(r.Verbs, q.Verb) {
		list = append(list, "verb")
	}
	if len(r.ResourceNames) > 0 && !slices.Contains(r.ResourceNames, q.Name) {
		list = append(list, "name")
	}
	return list
}
