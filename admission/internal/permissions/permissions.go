// Package permissions compares the permissions that roles grant with those that a user holds: users may not
// grant more than that.
package permissions

import (
	"context"
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
// line for each resource with its verbs. It is empty if the user holds all of them. Of many
// permissions it describes the first ones. The error is that of the context.
func Lacking(ctx context.Context, rules []Rule, held services.Rules) ([]string, error) {
	if long := longest(rules); len(long) > maxEntry {
		return []string{fmt.Sprintf("the rules have an entry of %d bytes, %q, which is too long to check: the limit is %d", len(long), short(long), maxEntry)}, nil
	}
	many := combinations(rules)
	if many > maxCombinations {
		return []string{fmt.Sprintf("the rules combine into more than %d permissions, which are too many to check", maxCombinations)}, nil
	}
	if work := many * weightOf(held); work > maxComparisons {
		return []string{fmt.Sprintf("comparing the rules with those of the user takes more than %d steps, which are too many", maxComparisons)}, nil
	}
	missing := missing{verbs: map[resourceRef][]string{}}
	for _, r := range rules {
		if err := missing.add(ctx, r, held); err != nil {
			return nil, err
		}
		if missing.full() {
			break
		}
	}
	return missing.lines(), nil
}

const (
	// maxEntry is the maximum length of an entry of a rule, in bytes. No name, path or verb of the
	// API is as long.
	maxEntry = 1024
	// maxLines and maxVerbs bound the lines about missing permissions and the verbs of each, and
	// maxPart the bytes of each entry there: the lines name combinations of entries, which are
	// together many times the size of the rules.
	maxLines = 100
	maxVerbs = 16
	maxPart  = 128
)

// longest returns the longest entry of rules.
func longest(rules []Rule) (found string) {
	for _, r := range rules {
		for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
			for _, entry := range list {
				if len(entry) > len(found) {
					found = entry
				}
			}
		}
	}
	return found
}

// short truncates an entry for a message.
func short(entry string) string {
	if len(entry) <= maxPart {
		return entry
	}
	return strings.ToValidUTF8(entry[:maxPart], "") + "…"
}

// missing collects the permissions that the user does not hold.
type missing struct {
	verbs map[resourceRef][]string
	paths []string // lines about non-resource paths
}

func (m *missing) full() bool { return len(m.verbs)+len(m.paths) > maxLines }

// add adds what a rule grants and the user does not hold, until there is enough.
func (m *missing) add(ctx context.Context, r Rule, held services.Rules) error {
	for _, path := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			if err := ctx.Err(); err != nil || m.full() {
				return err
			}
			if !holdsPath(held, verb, path) {
				m.paths = append(m.paths, fmt.Sprintf("{NonResourceURLs:[%q], Verbs:[%q]}", short(path), short(verb)))
			}
		}
	}
	for ref := range parts(r) {
		for _, verb := range r.Verbs {
			if err := ctx.Err(); err != nil || m.full() {
				return err
			}
			if of := m.verbs[ref]; len(of) <= maxVerbs && !slices.Contains(of, verb) && !holds(held, verb, ref) {
				m.verbs[ref] = append(of, verb)
			}
		}
	}
	return nil
}

// lines describes what is missing.
func (m *missing) lines() []string {
	all := m.paths
	for ref, verbs := range m.verbs {
		all = append(all, ref.describe(verbs))
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > maxLines {
		all = append(all[:maxLines:maxLines], "… and more, which were not compared")
	}
	return all
}

// maxComparisons bounds the permissions of a role times the list items of the writer's
// rules, because each permission may be compared with all of them. It takes about a
// second, unless the request ends before.
const maxComparisons = 200_000_000

// weightOf counts the list items of all rules that a user holds. A long one counts more than once.
func weightOf(held services.Rules) (weight int) {
	for _, h := range held.Resource {
		weight += 1 + weigh(h.Verbs) + weigh(h.APIGroups) + weigh(h.Resources) + weigh(h.ResourceNames)
	}
	for _, h := range held.NonResource {
		weight += 1 + weigh(h.Verbs) + weigh(h.Paths)
	}
	return weight
}

// weigh counts the items of a list: one for each 64 bytes that are compared at most.
func weigh(list []string) (weight int) {
	for _, item := range list {
		weight += 1 + min(len(item), maxEntry)/64
	}
	return weight
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
func parts(r Rule) iter.Seq[resourceRef] {
	return func(yield func(resourceRef) bool) {
		for _, group := range r.APIGroups {
			for _, kind := range r.Resources {
				if len(r.ResourceNames) == 0 && !yield(resourceRef{group: group, kind: kind}) {
					return
				}
				for _, name := range r.ResourceNames {
					if !yield(resourceRef{group, kind, name, true}) {
						return
					}
				}
			}
		}
	}
}

// resourceRef is one resource of a rule, with a name if the rule is limited to names.
type resourceRef struct {
	group, kind, name string
	named             bool // the rule is limited to names, of which "" is one that no object has
}

// describe formats a rule with these verbs for an error message.
func (ref resourceRef) describe(verbs []string) string {
	name := ""
	if ref.named {
		name = fmt.Sprintf("ResourceNames:[%q], ", short(ref.name))
	}
	shown := make([]string, min(len(verbs), maxVerbs), maxVerbs+1)
	for i := range shown {
		shown[i] = short(verbs[i])
	}
	if len(verbs) > maxVerbs {
		shown = append(shown, "…")
	}
	return fmt.Sprintf("{APIGroups:[%q], Resources:[%q], %sVerbs:%q}", short(ref.group), short(ref.kind), name, shown)
}

func holds(held services.Rules, verb string, ref resourceRef) bool {
	return slices.ContainsFunc(held.Resource, func(h services.ResourceRule) bool {
		return contains(h.Verbs, verb) && contains(h.APIGroups, ref.group) && containsResource(h.Resources, ref.kind) &&
			(len(h.ResourceNames) == 0 || ref.named && slices.Contains(h.ResourceNames, ref.name))
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
