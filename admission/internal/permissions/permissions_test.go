package permissions

import (
	"math/rand/v2"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/portico-platform/portico/services"
)

// TestCoversLikeUpstream compares the escalation check with that of Kubernetes on
// random rules.
func TestCoversLikeUpstream(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // reproducible
	some := func(of ...string) (list []string) {
		for range 1 + random.IntN(2) {
			list = append(list, of[random.IntN(len(of))])
		}
		return list
	}
	rule := func() Rule {
		if random.IntN(4) == 0 {
			return Rule{Verbs: some("get", "post", "*"), NonResourceURLs: some("/a", "/a/b", "/a/*", "/*", "*")}
		}
		r := Rule{Verbs: some("get", "list", "*"), APIGroups: some("", "apps", "*"), Resources: some("pods", "pods/status", "*/status", "pods/*", "*")}
		if random.IntN(3) == 0 {
			r.ResourceNames = some("one", "two")
		}
		return r
	}
	var covered int
	const rounds = 20_000
	for range rounds {
		var held services.Rules
		var owned, requested []rbacv1.PolicyRule
		for range 1 + random.IntN(4) {
			r := rule()
			owned = append(owned, upstreamRule(r))
			if len(r.NonResourceURLs) > 0 {
				held.NonResource = append(held.NonResource, services.NonResourceRule{Verbs: r.Verbs, Paths: r.NonResourceURLs})
			} else {
				held.Resource = append(held.Resource, services.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
			}
		}
		role := []Rule{rule(), rule()}
		for _, r := range role {
			requested = append(requested, upstreamRule(r))
		}
		want, missing := validation.Covers(owned, requested)
		if want {
			covered++
		}
		if got := Lacking(role, held); (len(got) == 0) != want {
			t.Fatalf("role %+v\nheld %+v\nlacks %q, upstream %+v", role, held, got, missing)
		}
	}
	if covered < rounds/20 || covered > rounds/2 {
		t.Errorf("%d of %d roles are covered: the trial is lopsided", covered, rounds)
	}
}

func upstreamRule(r Rule) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames, NonResourceURLs: r.NonResourceURLs}
}
