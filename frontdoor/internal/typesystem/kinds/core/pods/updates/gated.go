package updates

import (
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
)

// gates checks that scheduling gates are only removed.
func gates(c *rules.Check, before, after map[string]any, at *field.Path) {
	had := map[string]bool{}
	for _, gate := range rules.Objects(before, "schedulingGates") {
		had[rules.Text(gate, "name")] = true
	}
	gates := rules.Objects(after, "schedulingGates")
	for i, gate := range slices.Backward(gates) { // the last one of a name is reported
		if name := rules.Text(gate, "name"); !had[name] {
			had[name] = true
			c.Forbidden(at.Field("schedulingGates").Item(i).Field("name"), "only deletion is allowed, but found new scheduling gate '"+name+"'")
		}
	}
}

// gatedMutable is the first release in which pods that wait at a gate may narrow their node selector.
var gatedMutable, _ = release.Of("1.27")

// moreSelective checks that the node selector of a pod that waits at a gate only grows.
func moreSelective(c *rules.Check, before, after map[string]any, at *field.Path) {
	selector := rules.Object(after, "nodeSelector")
	for key, value := range rules.Object(before, "nodeSelector") {
		if selector[key] != value {
			c.Invalid(at.Field("nodeSelector"), selector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			return
		}
	}
}

// narrower checks that a pod that waits at a gate keeps the node affinity that it requires:
// each term may only get more requirements.
func narrower(c *rules.Check, before, after map[string]any, at *field.Path) {
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	termsOf := func(spec map[string]any) []map[string]any {
		return rules.Objects(rules.Object(spec, "affinity", "nodeAffinity", required), "nodeSelectorTerms")
	}
	had, has := termsOf(before), termsOf(after)
	at = at.Field("affinity").Field("nodeAffinity").Field(required).Field("nodeSelectorTerms")
	if len(had) > 0 && len(had) != len(has) {
		c.Invalid(at, has, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i, term := range had {
		if !extends(term, has[i]) {
			c.Invalid(at.Item(i), has[i], "only additions are allowed (no mutations or deletions)")
		}
	}
}

// extends reports whether a term has all requirements of the former one, in their order, or
// more. A former term without requirements selects nothing and may not change.
func extends(had, has map[string]any) bool {
	if len(rules.List(had, "matchExpressions"))+len(rules.List(had, "matchFields")) == 0 {
		return len(rules.List(has, "matchExpressions"))+len(rules.List(has, "matchFields")) == 0
	}
	for _, list := range [...]string{"matchExpressions", "matchFields"} {
		before, after := rules.List(had, list), rules.List(has, list)
		if len(after) < len(before) {
			return false
		}
		for i := range before {
			if !rules.Same(before[i], after[i]) {
				return false
			}
		}
	}
	return true
}

// withoutNodeAffinity returns the affinity of a pod but that to nodes; nil if there is none.
func withoutNodeAffinity(spec map[string]any) any {
	if left := rules.Without(rules.Object(spec, "affinity"), "nodeAffinity"); len(left) > 0 {
		return left
	}
	return nil
}
