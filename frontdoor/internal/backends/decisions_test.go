package backends

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
)

// deciding is an authz that counts the calls.
type deciding struct {
	services.Authz
	decision services.Decision
	calls    int
}

func (a *deciding) Authorize(context.Context, services.Attributes) (services.Decision, error) {
	a.calls++
	return a.decision, nil
}

// TestDecisions: authz is called once for equal requests, and again after any change of the
// roles or bindings by which it decided, for anything that may be decided differently, and
// after the lifetime of its decision.
func TestDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authz := &deciding{decision: services.Decision{Allowed: true, Reason: "why", Revision: 5}}
		newest := int64(5) // of the changes that the front door knows
		d := NewDecisions(authz, func(revision int64) bool { return newest <= revision })
		jane := services.Attributes{Verb: "get", Resource: "pods", Namespace: "a", Name: "x",
			User: services.UserInfo{Name: "jane", Groups: []string{"g"}}}
		ask := func(what string, a services.Attributes, calls int) {
			t.Helper()
			before := authz.calls
			got, err := d.Authorize(t.Context(), a)
			if err != nil || got != authz.decision || authz.calls-before != calls {
				t.Errorf("%s: %+v, %v after %d calls of authz, want %d", what, got, err, authz.calls-before, calls)
			}
		}
		ask("the first", jane, 1)
		ask("the same", jane, 0)
		for what, change := range map[string]func(*services.Attributes){
			"another name":      func(a *services.Attributes) { a.Name = "y" },
			"no name":           func(a *services.Attributes) { a.Name = "" },
			"another namespace": func(a *services.Attributes) { a.Namespace = "b" },
			"another verb":      func(a *services.Attributes) { a.Verb = "delete" },
			"a subresource":     func(a *services.Attributes) { a.Subresource = "status" },
			"a path":            func(a *services.Attributes) { a.Path = "/x" },
			"another user":      func(a *services.Attributes) { a.User.Name = "joe" },
			"another UID":       func(a *services.Attributes) { a.User.UID = "1" },
			"no groups":         func(a *services.Attributes) { a.User.Groups = nil },
			"other groups":      func(a *services.Attributes) { a.User.Groups = []string{"g", "h"} },
			"extra":             func(a *services.Attributes) { a.User.Extra = map[string][]string{"k": {"v"}} },
			"other extra":       func(a *services.Attributes) { a.User.Extra = map[string][]string{"k": {"v", "w"}} },
			"split differently": func(a *services.Attributes) { a.Verb, a.Path = "ge", "t" },
		} {
			other := jane
			change(&other)
			ask(what, other, 1)
			ask(what+" again", other, 0)
		}

		newest = 6
		ask("after a change of a role", jane, 1)
		ask("of an authz that does not know of it", jane, 1)
		authz.decision = services.Decision{Revision: 6}
		ask("a denial", jane, 1)
		ask("a denial again", jane, 1)
		authz.decision = services.Decision{Allowed: true}
		ask("without a revision", jane, 1)
		ask("without a revision again", jane, 1)

		authz.decision = services.Decision{Allowed: true, Revision: 6, AnyName: true}
		ask("for any name", jane, 1)
		other := jane
		other.Name = "z"
		ask("for another name", other, 0)
		other.User.Name = "joe"
		ask("for another name of another user", other, 1)
		<-time.After(decisionLifetime) // of the test's own clock
		ask("after its lifetime", jane, 1)
	})
}

// batches is an authz that allows the users whose names are odd, in batches.
type batches struct {
	deciding
	asked [][]services.Attributes
}

func (a *batches) AuthorizeBatch(_ context.Context, requests []services.Attributes) (results []services.AuthzResult, err error) {
	a.asked = append(a.asked, requests)
	for _, r := range requests {
		results = append(results, services.AuthzResult{Decision: services.Decision{Allowed: len(r.User.Name)%2 == 1, Reason: r.User.Name, Revision: 5}})
	}
	return results, nil
}

// TestDecisionsInBatches: authz is called once for what is not cached, and the results have the
// order of the requests.
func TestDecisionsInBatches(t *testing.T) {
	authz := &batches{}
	newest := int64(5)
	d := NewDecisions(authz, func(revision int64) bool { return newest <= revision })
	user := func(n int) services.Attributes {
		return services.Attributes{User: services.UserInfo{Name: strings.Repeat("x", n)}}
	}
	for _, c := range []struct{ users, asked []int }{
		{[]int{1, 2, 3}, []int{1, 2, 3}},
		{[]int{4, 3, 2, 1, 5}, []int{4, 2, 5}}, // denials are not cached
		{[]int{1, 3, 5}, nil},
	} {
		authz.asked = nil
		var requests, want []services.Attributes
		for _, n := range c.users {
			requests = append(requests, user(n))
		}
		for _, n := range c.asked {
			want = append(want, user(n))
		}
		for i, r := range services.AuthorizeAll(t.Context(), d, requests) {
			if r.Err != nil || r.Reason != requests[i].User.Name || r.Allowed != (c.users[i]%2 == 1) {
				t.Errorf("%v: result %d is %+v", c.users, i, r)
			}
		}
		if !reflect.DeepEqual(slices.Concat(authz.asked...), want) || len(authz.asked) > 1 {
			t.Errorf("%v: authz was asked %+v", c.users, authz.asked)
		}
	}
	newest = 6
	if services.AuthorizeAll(t.Context(), d, []services.Attributes{user(1)}); len(authz.asked) != 1 {
		t.Error("a cached decision was used after a change of policy")
	}
}

// BenchmarkDecisions is a decision that the front door has cached.
func BenchmarkDecisions(b *testing.B) {
	d := NewDecisions(&deciding{decision: services.Decision{Allowed: true, Revision: 5, AnyName: true}}, func(int64) bool { return true })
	jane := services.Attributes{Verb: "get", Resource: "pods", Namespace: "a", Name: "x",
		User: services.UserInfo{Name: "jane", Groups: []string{"g1", "g2", "g3", services.GroupAuthenticated}}}
	b.ReportAllocs()
	for b.Loop() {
		if decision, err := d.Authorize(b.Context(), jane); err != nil || !decision.Allowed {
			b.Fatal(err)
		}
	}
}
