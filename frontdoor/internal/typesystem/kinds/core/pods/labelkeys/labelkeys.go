// Package labelkeys holds the functions about matchLabelKeys and mismatchLabelKeys of pods: names
// of labels whose values in the pod restrict a selector. It serves "Resources and their fields"
// of the specification.
package labelkeys

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the file of pods refers to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"affinityKeys": affinityKeys,
		"spreadKeys":   spreadKeys,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"mergeLabelKeys": mergeLabelKeys,
	},
}

// Lists of label keys, and the features without which they change no selector.
const (
	match, mismatch = "matchLabelKeys", "mismatchLabelKeys"
	ofAffinity      = "MatchLabelKeysInPodAffinity"
	ofSpread        = "MatchLabelKeysInPodTopologySpread"
	mergedInSpread  = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
)

// mergeLabelKeys adds the values of a new pod's labels to the selectors that name their keys:
// the scheduler reads selectors only.
func mergeLabelKeys(w kinds.Write, obj, _ map[string]any) {
	spec, labels := rules.Object(obj, "spec"), rules.Object(obj, "metadata", "labels")
	if w.On(ofAffinity) {
		for _, kind := range [...]string{"podAffinity", "podAntiAffinity"} {
			terms := rules.Object(spec, "affinity", kind)
			for _, term := range rules.Objects(terms, "requiredDuringSchedulingIgnoredDuringExecution") {
				restrict(term, labels)
			}
			for _, weighted := range rules.Objects(terms, "preferredDuringSchedulingIgnoredDuringExecution") {
				restrict(rules.Object(weighted, "podAffinityTerm"), labels)
			}
		}
	}
	if w.On(ofSpread) && w.On(mergedInSpread) {
		for _, constraint := range rules.Objects(spec, "topologySpreadConstraints") {
			restrict(constraint, labels)
		}
	}
}

// restrict adds the values of labels to the selector of a term. A term without a selector matches
// no pod anyway.
func restrict(term, labels map[string]any) {
	selector := rules.Object(term, "labelSelector")
	if selector == nil {
		return
	}
	for _, list := range [...]struct{ keys, operator string }{{match, "In"}, {mismatch, "NotIn"}} {
		for _, key := range rules.Texts(term, list.keys) {
			if value, ok := labels[key]; ok {
				selector["matchExpressions"] = append(slices.Clone(rules.List(selector, "matchExpressions")),
					map[string]any{"key": key, "operator": list.operator, "values": []any{value}})
			}
		}
	}
}

// spreadKeys checks the label keys of topology spread constraints, and when the number of
// domains counts.
func spreadKeys(c *rules.Check, m, old map[string]any, at *field.Path) {
	if m["minDomains"] != nil && m["whenUnsatisfiable"] != "DoNotSchedule" {
		c.Invalid(at.Field("minDomains"), m["minDomains"],
			fmt.Sprintf("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %s", rules.Text(m, "whenUnsatisfiable")))
	}
	affinityKeys(c, m, old, at)
}

// affinityKeys checks the keys whose values are added to a selector: they need a selector, which
// does not have them, and are in one of the lists only.
func affinityKeys(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, list := range [...]string{match, mismatch} {
		keys := rules.Texts(m, list)
		if len(keys) > 0 && m["labelSelector"] == nil {
			c.Forbidden(at.Field(list), "must not be specified when labelSelector is not set")
			continue
		}
		for i, key := range keys {
			for _, problem := range validation.IsQualifiedName(key) {
				c.Invalid(at.Field(list).Item(i), key, problem)
			}
		}
	}
	keys, others := rules.Texts(m, match), rules.Texts(m, mismatch)
	selected := rules.Object(m, "labelSelector")
	seen := map[string]bool{}
	for key := range rules.Object(selected, "matchLabels") {
		seen[key] = true
	}
	position := map[string]int{}
	for i, key := range slices.Backward(keys) {
		position[key] = i // the first, if there are several
	}
	for _, expression := range rules.Objects(selected, "matchExpressions") {
		key := rules.Text(expression, "key")
		// One expression is that of the key itself, which mergeLabelKeys has added.
		if i, ok := position[key]; ok && seen[key] {
			c.Invalid(at.Item(i), key, "exists in both matchLabelKeys and labelSelector")
		}
		seen[key] = true
	}
	excluded := map[string]bool{}
	for _, key := range others {
		excluded[key] = true
	}
	for i, key := range keys {
		if excluded[key] {
			c.Invalid(at.Field(match).Item(i), key, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}
