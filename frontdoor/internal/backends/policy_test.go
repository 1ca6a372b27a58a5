package backends

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// lagging is an authz that allows until it has reached a revision, which it does after some
// calls.
type lagging struct {
	services.Authz
	calls, until int
}

func (a *lagging) Authorize(context.Context, services.Attributes) (services.Decision, error) {
	if a.calls++; a.calls > a.until {
		return services.Decision{Revision: 20}, nil
	}
	return services.Decision{Allowed: true, Revision: 10}, nil
}

// TestPermissionsAreCurrent: a permission by an older policy than the newest known one is not
// used, unless authz lags for long; one that depends on no policy is.
func TestPermissionsAreCurrent(t *testing.T) {
	for _, c := range []struct {
		name    string
		newest  int64
		until   int
		allowed bool
		calls   int
	}{
		{"nothing has changed", 10, 1, true, 1},
		{"not known", 0, 1, true, 1},
		{"authz is up to date", 20, 0, false, 1},
		{"authz lags", 20, 5, false, 6},
		{"authz lags for long", 20, 1 << 20, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			authz, began := &lagging{until: c.until}, time.Now()
			d, err := current{authz, func() int64 { return c.newest }}.Authorize(t.Context(), services.Attributes{})
			if err != nil || d.Allowed != c.allowed || c.calls > 0 && authz.calls != c.calls || time.Since(began) > 2*policyPatience {
				t.Errorf("%s: %+v, %v after %d calls and %v", c.name, d, err, authz.calls, time.Since(began))
			}
			authz, began = &lagging{until: c.until}, time.Now()
			results := services.AuthorizeAll(t.Context(), current{authz, func() int64 { return c.newest }}, make([]services.Attributes, 1))
			if r := results[0]; r.Err != nil || r.Allowed != c.allowed || c.calls > 0 && authz.calls != c.calls || time.Since(began) > 2*policyPatience {
				t.Errorf("%s, in a batch: %+v after %d calls and %v", c.name, r, authz.calls, time.Since(began))
			}
		})
	}
}

// TestOwnWritesCount: what this front door has written counts for it before it has come back over
// the bus, and a write of another type does not.
func TestOwnWritesCount(t *testing.T) {
	roles, pods := resource.GroupResource{Group: "rbac", Resource: "roles"}, resource.GroupResource{Resource: "pods"}
	cluster := fake.New(t)
	types := []resource.GroupResource{roles}
	p := newPolicy(changes.NewHeads(cluster.Source(), cluster, types...), types) // which do not run
	store := policyStore{cluster.Store(), p}
	create := func(gr resource.GroupResource, name string) int64 {
		t.Helper()
		o, err := store.Create(t.Context(), services.CreateRequest{Key: resource.Key{GroupResource: gr, Namespace: "n", Name: name},
			Content: services.Content{JSON: []byte(`{"metadata":{"name":"` + name + `"}}`), UID: name}})
		if err != nil {
			t.Fatal(err)
		}
		return o.Revision
	}
	create(pods, "p")
	if p.Newest() != 0 {
		t.Errorf("a pod counts: %d", p.Newest())
	}
	revision := create(roles, "r")
	if p.Newest() != revision || p.Unchanged(revision-1) {
		t.Errorf("the newest is %d, want %d", p.Newest(), revision)
	}
}
