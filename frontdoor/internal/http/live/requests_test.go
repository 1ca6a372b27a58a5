package live

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// world is an authn and an authz whose answers a test changes. It counts their calls.
type world struct {
	services.Authz
	mu             sync.Mutex
	gone           map[string]bool // tokens
	refused        map[string]bool // user names
	groups         []string
	credential     services.Credential
	cacheFor       time.Duration
	policy         int64 // that authz knows
	authns, authzs int   // calls
	decided        int
	reached        int64 // of the last call of authn
	down           error
	deciding       func() // runs while authn decides
}

func (w *world) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deciding != nil {
		defer w.deciding()
	}
	w.authns++
	w.reached = c.NotOlderThan
	switch {
	case w.down != nil:
		return services.Authentication{}, w.down
	case w.gone[c.BearerToken]:
		return services.Authentication{}, services.Unauthorized("")
	}
	return w.result(c.BearerToken), nil
}

func (w *world) result(token string) services.Authentication {
	return services.Authentication{User: services.UserInfo{Name: "user of " + token, Groups: w.groups}, CacheFor: w.cacheFor, Credential: w.credential}
}

// AuthorizeBatch counts as one call.
func (w *world) AuthorizeBatch(ctx context.Context, requests []services.Attributes) (results []services.AuthzResult, err error) {
	w.change(func() { w.authzs++ })
	for _, a := range requests {
		d, err := w.Authorize(ctx, a)
		results = append(results, services.AuthzResult{Decision: d, Err: err})
	}
	return results, nil
}

func (w *world) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.decided++
	if w.down != nil {
		return services.Decision{}, w.down
	}
	return services.Decision{Allowed: !w.refused[a.User.Name], Revision: w.policy}, nil
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) calls() (authns, authzs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	authns, authzs, w.authns, w.authzs = w.authns, w.authzs, 0, 0
	return authns, authzs
}

// newWorld returns requests that are checked while the test runs.
func newWorld(t testing.TB, running bool) (*world, *Requests) {
	w := &world{gone: map[string]bool{}, refused: map[string]bool{}, policy: 10, cacheFor: time.Hour}
	q := NewRequests(Config{Authn: w, Authz: w, Log: slog.New(slog.DiscardHandler),
		Forbidden: func(services.Attributes, services.Decision) *services.Status {
			return services.Forbidden("", "", "", "refused")
		}})
	q.policy.Store(10)
	if running {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { _ = q.Run(ctx); close(done) }()
		t.Cleanup(func() { stop(); <-done })
	}
	return w, q
}

// open opens a watch of a resource type with a token. The user is impersonated if it has a name.
func (w *world) open(q *Requests, token, of, impersonated string) context.Context {
	a := w.result(token)
	r := NewRequest(services.Credentials{BearerToken: token}, a)
	question := services.Attributes{User: a.User, Verb: "watch", Resource: of}
	if impersonated != "" {
		r.Allowed(services.Attributes{User: a.User, Verb: "impersonate", Resource: "users", Name: impersonated}, services.Decision{Revision: w.policy}, true)
		question.User = services.UserInfo{Name: impersonated}
	}
	r.Allowed(question, services.Decision{Revision: w.policy}, impersonated == "")
	ctx, end := context.WithCancelCause(context.Background())
	q.Open(r, end)
	context.AfterFunc(ctx, func() { q.Close(r) })
	return ctx
}

// code returns the status code that a request ended with; 0 if it is open.
func code(ctx context.Context) int32 {
	var why *services.Status
	if errors.As(context.Cause(ctx), &why) {
		return why.Code
	}
	return 0
}

func wait(d time.Duration) { <-time.After(d) } // on the clock of the test

// TestEnds changes what each request depends on. Those that do not depend on it stay.
func TestEnds(t *testing.T) {
	token := resource.Key{GroupResource: resource.GroupResource{Resource: "secrets"}, Namespace: "n", Name: "s"}
	for name, c := range map[string]struct {
		credential services.Credential
		cacheFor   time.Duration
		change     func(w *world, q *Requests)
		want       int32
		within     time.Duration
	}{
		"policy": {change: func(w *world, q *Requests) {
			w.refused["user of a"], w.policy = true, 20
			q.PolicyChanged(20, make([]services.Change, 1))
		}, want: http.StatusForbidden},
		"policy that authz learns later": {change: func(w *world, q *Requests) {
			q.PolicyChanged(20, make([]services.Change, 1))
			time.AfterFunc(time.Second, func() { w.change(func() { w.refused["user of a"], w.policy = true, 20 }) })
		}, want: http.StatusForbidden},
		"policy, while authz is unavailable at first": {change: func(w *world, q *Requests) {
			w.refused["user of a"], w.policy, w.down = true, 20, services.Unavailable("x")
			q.PolicyChanged(20, make([]services.Change, 1))
			time.AfterFunc(time.Second, func() { w.change(func() { w.down = nil }) })
		}, want: http.StatusForbidden},
		"a restart of the stream of policy": {change: func(w *world, q *Requests) {
			w.refused["user of a"] = true
			q.PolicyChanged(10, nil)
		}, want: http.StatusForbidden},
		"a bound object": {credential: services.Credential{Objects: []services.BoundObject{{Key: token}}}, change: func(w *world, q *Requests) {
			w.gone["a"] = true
			q.ObjectsChanged(20, []services.Change{{Type: services.Deleted, Object: services.Object{Key: token}}})
		}, want: http.StatusUnauthorized},
		"a restart of the stream of objects": {credential: services.Credential{Objects: []services.BoundObject{{Key: token}}}, change: func(w *world, q *Requests) {
			w.gone["a"] = true
			q.ObjectsChanged(20, nil)
		}, want: http.StatusUnauthorized},
		"a file": {credential: services.Credential{Source: "f"}, cacheFor: time.Second, change: func(w *world, _ *Requests) {
			w.gone["a"], w.credential.Source = true, "g"
		}, want: http.StatusUnauthorized},
		"the end of a cached result": {cacheFor: time.Second, change: func(w *world, _ *Requests) { w.gone["a"] = true }, want: http.StatusUnauthorized},
		"its expiry": {credential: services.Credential{Expires: time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)}, change: func(w *world, _ *Requests) {
			w.down = services.Unavailable("x") // which is not called
		}, want: http.StatusUnauthorized},
		"other groups": {cacheFor: time.Second, change: func(w *world, _ *Requests) {
			w.groups, w.refused["user of a"] = []string{"g"}, true
		}, want: http.StatusForbidden},
		"nothing that is followed": {change: func(w *world, _ *Requests) { w.gone["a"], w.refused["user of a"] = true, true }, want: 0},
		"nothing, with authn and authz unavailable": {cacheFor: time.Second, change: func(w *world, q *Requests) {
			w.down = services.Unavailable("x")
			q.PolicyChanged(20, make([]services.Change, 1))
		}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // whose clock begins in the year 2000
				w, q := newWorld(t, true)
				w.credential = c.credential
				if c.cacheFor > 0 {
					w.cacheFor = c.cacheFor
				}
				ended, stays := w.open(q, "a", "pods", ""), w.open(q, "b", "pods", "")
				w.change(func() { c.change(w, q) })
				wait(2 * time.Second)
				if got := code(ended); got != c.want {
					t.Errorf("ended with %d, want %d", got, c.want)
				}
				if got := code(stays); got != 0 && name != "its expiry" {
					t.Errorf("another user's request ended with %d", got)
				}
			})
		})
	}
}

// TestImpersonated: a request in the name of another user depends on the caller, on the right to
// impersonate and on the rights of the user.
func TestImpersonated(t *testing.T) {
	for refused, want := range map[string][]int32{"user of a": {403, 403}, "jane": {403, 0}, "nobody": {0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			w, q := newWorld(t, true)
			requests := []context.Context{w.open(q, "a", "pods", "jane"), w.open(q, "a", "pods", "")}
			w.change(func() { w.refused[refused], w.policy = true, 20 })
			q.PolicyChanged(20, make([]services.Change, 1))
			wait(2 * time.Second)
			for i, r := range requests {
				if got := code(r); got != want[i] {
					t.Errorf("%s, request %d: ended with %d, want %d", refused, i, got, want[i])
				}
			}
		})
	}
}

// TestBatches counts the calls for many requests: one to authn for all of the same credentials,
// one for all that come from one file, and one to authz that asks each different question once.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(t, true)
		w.cacheFor, w.credential.Source = time.Second, "f"
		for i := range 1000 {
			w.open(q, strconv.Itoa(i%100), "r"+strconv.Itoa(i%10), "")
		}
		wait(1500 * time.Millisecond)
		if authns, authzs := w.calls(); authns != 1 || authzs != 0 {
			t.Errorf("in a second without changes: %d calls to authn and %d to authz", authns, authzs)
		}
		w.change(func() { w.policy = 30 })
		for revision := range int64(10) {
			q.PolicyChanged(21+revision, make([]services.Change, 1))
		}
		wait(400 * time.Millisecond)
		if _, authzs := w.calls(); authzs != 1 || w.decided != 100 {
			t.Errorf("%d calls to authz after ten changes, and %d decisions about 100 different questions", authzs, w.decided)
		}
	})
}

// TestUnkept: decisions that depend on more than roles are requested every second.
func TestUnkept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(t, true)
		w.policy = 0
		r := w.open(q, "a", "pods", "")
		wait(1500 * time.Millisecond)
		if _, authzs := w.calls(); authzs != 1 {
			t.Errorf("%d calls to authz in a second", authzs)
		}
		w.change(func() { w.refused["user of a"] = true })
		wait(2 * time.Second)
		if code(r) != http.StatusForbidden {
			t.Error("the request is open")
		}
	})
}

// TestChangesBeforeOpening: what changes between a decision and the registration counts.
func TestChangesBeforeOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(t, true)
		w.credential.Objects = []services.BoundObject{{Key: resource.Key{Name: "s"}}}
		q.ObjectsChanged(15, make([]services.Change, 1))
		q.PolicyChanged(20, make([]services.Change, 1))
		w.change(func() { w.refused["user of a"], w.gone["b"] = true, true })
		a, b := w.open(q, "a", "pods", ""), w.open(q, "b", "pods", "")
		w.change(func() { w.policy = 20 })
		wait(time.Second)
		if code(a) != http.StatusForbidden || code(b) != http.StatusUnauthorized {
			t.Errorf("ended with %d and %d", code(a), code(b))
		}
		if w.reached != 15 {
			t.Errorf("authn was called for the state of %d", w.reached)
		}
	})
}

// TestChangesWhileAuthnDecides: a change that authn may have missed is not lost.
func TestChangesWhileAuthnDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(t, true)
		key := resource.Key{Name: "s"}
		w.credential.Objects = []services.BoundObject{{Key: key}}
		w.deciding = func() {
			w.deciding, w.gone["a"] = nil, true
			q.ObjectsChanged(15, []services.Change{{Type: services.Deleted, Object: services.Object{Key: key}}})
		}
		r := w.open(q, "a", "pods", "")
		wait(time.Second)
		if code(r) != http.StatusUnauthorized {
			t.Errorf("ended with %d", code(r))
		}
	})
}

// TestNothingIsLeft: closed requests leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	w, q := newWorld(t, false)
	w.credential.Objects = []services.BoundObject{{Key: resource.Key{Name: "s"}}}
	var all []*Request
	for i := range 10 {
		r := NewRequest(services.Credentials{BearerToken: strconv.Itoa(i % 2)}, w.result("x"))
		r.Allowed(services.Attributes{Verb: "watch", Resource: strconv.Itoa(i % 3)}, services.Decision{Revision: 1}, true)
		q.Open(r, func(error) {})
		all = append(all, r)
	}
	for _, r := range all {
		q.Close(r)
	}
	if len(q.identities)+len(q.bound.of) != 0 {
		t.Errorf("%d identities and %d objects", len(q.identities), len(q.bound.of))
	}
}

// BenchmarkPolicyChange checks 10,000 watches of 1,000 users after a change of policy.
func BenchmarkPolicyChange(b *testing.B) {
	w, q := newWorld(b, false)
	for i := range 10_000 {
		w.open(q, strconv.Itoa(i%1000), "r"+strconv.Itoa(i/1000), "")
	}
	policy := int64(10)
	for b.Loop() {
		policy++
		w.change(func() { w.policy = policy })
		q.policy.Store(policy)
		if !q.check(b.Context(), time.Now()) {
			b.Fatal("authz is behind")
		}
	}
}

// BenchmarkQuiet is the check that happens once a second without changes.
func BenchmarkQuiet(b *testing.B) {
	w, q := newWorld(b, false)
	for i := range 10_000 {
		w.open(q, strconv.Itoa(i%1000), "r"+strconv.Itoa(i/1000), "")
	}
	for b.Loop() {
		q.check(b.Context(), time.Now())
	}
}

// TestRequestsWithoutRights: a request that nothing allows, since it reads nothing, ends with its
// credentials, also beside another one.
func TestRequestsWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(t, true)
		r := NewRequest(services.Credentials{BearerToken: "a"}, w.result("a"))
		ctx, end := context.WithCancelCause(context.Background())
		q.Open(r, end)
		defer q.Close(r)
		beside := NewRequest(services.Credentials{BearerToken: "a"}, w.result("a"))
		q.Open(beside, func(error) {})
		q.Close(beside)
		w.change(func() { w.gone["a"] = true })
		q.Revoked(20, nil)
		wait(time.Second)
		if code(ctx) != http.StatusUnauthorized {
			t.Errorf("ended with %d", code(ctx))
		}
	})
}
