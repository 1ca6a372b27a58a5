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

// lagging is an authz of an earlier version that allows until it has reached a revision, which it does after some
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

// waiting is an authz that waits until it has reached revision 20, which takes a while; it may be too long.
type waiting struct {
	services.Authz
	calls int
	takes time.Duration
}

func (a *waiting) Authorize(_ context.Context, q services.Attributes) (services.Decision, error) {
	a.calls++
	if q.NotBefore <= 10 {
		return services.Decision{Allowed: true, Revision: 10}, nil
	}
	if a.takes > services.MaxAuthzWait {
		<-time.After(services.MaxAuthzWait + time.Millisecond) // and the way there
		return services.Decision{Allowed: true, Revision: 10}, nil
	}
	<-time.After(a.takes)
	return services.Decision{Revision: 20}, nil
}

// TestAuthzWaits: an authz that lags is called once, and waits itself.
func TestAuthzWaits(t *testing.T) {
	for newest, takes := range map[int64]time.Duration{10: 0, 20: 100 * time.Millisecond, 21: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			authz := &waiting{takes: takes}
			now := current{authz, func() int64 { return newest }}
			d, err := now.Authorize(t.Context(), services.Attributes{})
			results := services.AuthorizeAll(t.Context(), now, make([]services.Attributes, 1))
			if want := newest != 20; err != nil || d.Allowed != want || results[0].Err != nil || results[0].Allowed != want || authz.calls != 2 {
				t.Errorf("%d: %+v, %v; in a batch %+v; %d calls", newest, d, err, results[0], authz.calls)
			}
		})
	}
}

// TestWritesAreOnTheBus: a write returns once this front door has it from the bus, if it follows.
func TestWritesAreOnTheBus(t *testing.T) {
	roles := resource.GroupResource{Group: "rbac", Resource: "roles"}
	cluster := fake.New(t)
	heads := changes.NewHeads(cluster.Source(), cluster, roles)
	p := newPolicy(heads, []resource.GroupResource{roles})
	for _, loop := range heads.Loops() {
		go func() { _ = loop(t.Context()) }() // they return nil when the test ends
	}
	for end := time.Now().Add(10 * time.Second); heads.Newest() == 0; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("roles are never followed")
		}
	}
	store := policyStore{cluster.Store(), p}
	for _, name := range []string{"a", "b", "c"} {
		o, err := store.Create(t.Context(), services.CreateRequest{Key: resource.Key{GroupResource: roles, Namespace: "n", Name: name},
			Content: services.Content{JSON: []byte(`{"metadata":{"name":"` + name + `"}}`), UID: name}})
		if err != nil {
			t.Fatal(err)
		}
		if heads.Unchanged(o.Revision - 1) {
			t.Errorf("%s is written, and not on the bus", name)
		}
	}
	if p.resting.Load() != 0 {
		t.Error("the bus counts as silent")
	}
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
