package plugin

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/services"
)

// policyRule is a rule of a role, as it is stored.
type policyRule struct {
	Verbs           []string `json:"verbs"`
	APIGroups       []string `json:"apiGroups"`
	Resources       []string `json:"resources"`
	ResourceNames   []string `json:"resourceNames"`
	NonResourceURLs []string `json:"nonResourceURLs"`
}

// everything returns the rules that leave nothing out.
func everything() []policyRule {
	all := []string{"*"}
	return []policyRule{{Verbs: all, APIGroups: all, Resources: all}, {Verbs: all, NonResourceURLs: all}}
}

// lacking names a part of the rule that what a user holds does not cover; empty
// when all is covered.
func (r policyRule) lacking(held services.Rules) string {
	names := r.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range r.Verbs {
		for _, path := range r.NonResourceURLs {
			if !holdsPath(held, verb, path) {
				return verb + " " + path
			}
		}
		for _, group := range r.APIGroups {
			for _, kind := range r.Resources {
				for _, name := range names {
					if !holds(held, verb, resourceRef{group, kind, name}) {
						return strings.TrimSpace(verb + " " + strings.TrimSuffix(kind+"."+group, ".") + " " + name)
					}
				}
			}
		}
	}
	return ""
}

// resourceRef is what one part of a rule is about; an empty name is every name.
type resourceRef struct{ group, kind, name string }

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
