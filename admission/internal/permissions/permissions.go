// Package permissions compares the permissions that roles grant with those that a user
// holds: nobody may grant more than that.
package permissions

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services"
)

// Rule is a rule of a role as it is stored.
type Rule struct {
	Verbs           []string `json:"verbs"`
	APIGroups       []string `json:"apiGroups"`
	Resources       []string `json:"resources"`
	ResourceNames   []string `json:"resourceNames"`
	NonResourceURLs []string `json:"nonResourceURLs"`
}

// Everything returns rules that grant every permission.
func Everything() []Rule {
	all := []string{"*"}
	return []Rule{{Verbs: all, APIGroups: all, Resources: all}, {Verbs: all, NonResourceURLs: all}}
}

// Lacking describes the permissions that the rules grant and the user does not hold, one
// line for each resource with its verbs. It is empty if the user holds all of them.
func Lacking(rules []Rule, held services.Rules) []string {
	many := combinations(rules)
	if many > maxCombinations {
		return []string{fmt.Sprintf("the rules combine into more than %d permissions, which are too many to check", maxCombinations)}
	}
	if work := many * itemsOf(held); work > maxComparisons {
		return []string{fmt.Sprintf("the rules and those of the user compare in more than %d ways, which are too many to check", maxComparisons)}
	}
	verbs := map[resourceRef][]string{}
	seen := map[permission]bool{}
	var all []string
	for _, r := range rules {
		names := r.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range r.Verbs {
			for _, path := range r.NonResourceURLs {
				if !holdsPath(held, verb, path) {
					all = append(all, fmt.Sprintf("{NonResourceURLs:[%q], Verbs:[%q]}", path, verb))
				}
			}
			for ref := range parts(r.APIGroups, r.Resources, names) {
				if p := (permission{verb, ref}); !seen[p] && !holds(held, verb, ref) {
					seen[p] = true
					verbs[ref] = append(verbs[ref], verb)
				}
			}
		}
	}
	for ref, missing := range verbs {
		all = append(all, ref.describe(missing))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// permission is a verb on one resource.
type permission struct {
	verb string
	ref  resourceRef
}

// maxComparisons bounds the permissions of a role times the list items of the writer's
// rules, because each permission may be compared with all of them. It takes about a
// second.
const maxComparisons = 200_000_000

// itemsOf counts the list items of all rules that a user holds.
func itemsOf(held services.Rules) (items int) {
	for _, h := range held.Resource {
		items += 1 + len(h.Verbs) + len(h.APIGroups) + len(h.Resources) + len(h.ResourceNames)
	}
	for _, h := range held.NonResource {
		items += 1 + len(h.Verbs) + len(h.Paths)
	}
	return items
}

// maxCombinations bounds the permissions that the rules of a role grant: a rule of a few
// kilobytes can name a thousand groups, resources, names and verbs, and grants every
// combination of them.
const maxCombinations = 100_000

// combinations counts the permissions that rules grant. It stops above maxCombinations.
func combinations(rules []Rule) (count int) {
	for _, r := range rules {
		resources := len(r.Verbs)
		for _, n := range []int{len(r.APIGroups), len(r.Resources), max(len(r.ResourceNames), 1)} {
			resources = min(resources*n, maxCombinations+1)
		}
		if count += resources + min(len(r.Verbs)*len(r.NonResourceURLs), maxCombinations+1); count > maxCombinations {
			return count
		}
	}
	return count
}

// parts iterates over the resources of a rule.
func parts(groups, kinds, names []string) iter.Seq[resourceRef] {
	return func(yield func(resourceRef) bool) {
		for _, group := range groups {
			for _, kind := range kinds {
				for _, name := range names {
					if !yield(resourceRef{group, kind, name}) {
						return
					}
				}
			}
		}
	}
}

// resourceRef is one resource of a rule; an empty name means all names.
type resourceRef struct{ group, kind, name string }

// describe formats a rule with these verbs for an error message.
func (ref resourceRef) describe(verbs []string) string {
	name := ""
	if ref.name != "" {
		name = fmt.Sprintf("ResourceNames:[%q], ", ref.name)
	}
	return fmt.Sprintf("{APIGroups:[%q], Resources:[%q], %sVerbs:%q}", ref.group, ref.kind, name, verbs)
}

func holds(held services.Rules, verb string, ref resourceRef) bool {
	return slices.ContainsFunc(held.Resource, func(h services.ResourceRule) bool {
		return contains(h.Verbs, verb) && contains(h.APIGroups, ref.group) && containsResource(h.Resources, ref.kind) &&
			(len(h.ResourceNames) == 0 || ref.name != "" && slices.Contains(h.ResourceNames, ref.name))
	})
}

func holdsPath(held services.Rules, verb, path string) bool {
	return slices.ContainsFunc(held.NonResource, func(h services.NonResourceRule) bool {
		return contains(h.Verbs, verb) && slices.ContainsFunc(h.Paths, func(covered string) bool {
			stem, open := strings.CutSuffix(covered, "*")
			return covered == path || open && strings.HasPrefix(path, stem)
		})
	})
}

func containsResource(list []string, kind string) bool {
	_, subresource, of := strings.Cut(kind, "/")
	return contains(list, kind) || of && slices.Contains(list, "*/"+subresource)
}

func contains(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}
