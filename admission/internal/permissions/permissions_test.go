package permissions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
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
			r.ResourceNames = some("one", "two", "")
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
		if got, err := Lacking(t.Context(), role, held); err != nil || (len(got) == 0) != want {
			t.Fatalf("role %+v\nheld %+v\nlacks %q, %v, upstream %+v", role, held, got, err, missing)
		}
	}
	if covered < rounds/20 || covered > rounds/2 {
		t.Errorf("%d of %d roles are covered: the trial is lopsided", covered, rounds)
	}
}

func upstreamRule(r Rule) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames, NonResourceURLs: r.NonResourceURLs}
}

// TestLargeRoles describes what roles grant whose combinations are many times their size.
func TestLargeRoles(t *testing.T) {
	names := func(count, length int) (list []string) {
		for i := range count {
			list = append(list, fmt.Sprintf("%0*d", length, i))
		}
		return list
	}
	for _, x := range []struct {
		name string
		role Rule
		want string // in the first or the last line
	}{
		{"one long group", Rule{Verbs: []string{"get"}, APIGroups: []string{strings.Repeat("a", 1_500_000)}, Resources: []string{"pods"}, ResourceNames: names(100_000, 1)},
			"an entry of 1500000 bytes"},
		{"one long path", Rule{Verbs: names(1000, 3), NonResourceURLs: []string{"/" + strings.Repeat("a", 1_500_000)}}, "an entry of 1500001 bytes"},
		{"long groups", Rule{Verbs: []string{"get"}, APIGroups: names(10, maxEntry), Resources: []string{"pods"}, ResourceNames: names(10_000, 1)}, "… and more"},
		{"long verbs", Rule{Verbs: names(1000, maxEntry), APIGroups: []string{""}, Resources: names(100, 1)}, `"…"]`},
		{"long paths", Rule{Verbs: names(1000, 3), NonResourceURLs: names(100, maxEntry)}, "… and more"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			lines, err := Lacking(t.Context(), []Rule{x.role}, services.Rules{})
			runtime.ReadMemStats(&after)
			if err != nil || len(lines) == 0 || !strings.Contains(lines[0]+lines[len(lines)-1], x.want) {
				t.Fatalf("%.200q, %v, want %q", lines, err, x.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
				t.Errorf("took %d bytes", took)
			}
			if size := len(strings.Join(lines, "\n")); len(lines) > maxLines+1 || size > 512<<10 {
				t.Errorf("%d lines of %d bytes", len(lines), size)
			}
		})
	}
}

// TestLackingEndsWithTheRequest compares what the user holds, which ends when nobody waits for it.
func TestLackingEndsWithTheRequest(t *testing.T) {
	held := services.Rules{Resource: []services.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}
	role := []Rule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	if lines, err := Lacking(t.Context(), role, held); err != nil || len(lines) > 0 {
		t.Fatalf("lacks %q, %v", lines, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lacking(ended, role, held); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the request", err)
	}
}

// TestLongRightsCountMore bounds what is compared by its bytes as well.
func TestLongRightsCountMore(t *testing.T) {
	with := func(group string) services.Rules {
		return services.Rules{Resource: []services.ResourceRule{{Verbs: []string{"get"}, APIGroups: []string{group}, Resources: []string{"pods"}}}}
	}
	if few, many := weightOf(with("apps")), weightOf(with(strings.Repeat("a", maxEntry))); many < few+maxEntry/64 || many != weightOf(with(strings.Repeat("a", 10*maxEntry))) {
		t.Errorf("a short group weighs %d, a long one %d", few, many)
	}
}
