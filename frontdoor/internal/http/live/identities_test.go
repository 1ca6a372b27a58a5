package live

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// counting is an authn that accepts every token for a minute and counts the calls.
type counting struct{ calls map[string]int }

func (a counting) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	a.calls[c.BearerToken]++
	if c.BearerToken == "bad" {
		return services.Authentication{}, services.Unauthorized("")
	}
	return services.Authentication{User: services.UserInfo{Name: "user of " + c.BearerToken}, CacheFor: time.Minute}, nil
}

// TestIdentities: authn is called once a minute for a token; many other tokens do not evict
// those in use; rejected tokens and certificates are not cached.
func TestIdentities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authn := counting{map[string]int{}}
		known := NewIdentities(authn)
		ask := func(c services.Credentials) {
			t.Helper()
			a, err := known.Authenticate(t.Context(), c)
			if c.BearerToken != "bad" && (err != nil || a.User.Name != "user of "+c.BearerToken) {
				t.Fatalf("%q is %+v, %v", c.BearerToken, a, err)
			}
		}
		for i := range 2 * identitiesKept {
			ask(services.Credentials{BearerToken: "used"})
			ask(services.Credentials{BearerToken: strconv.Itoa(i)})
		}
		if n := authn.calls["used"]; n != 1 {
			t.Errorf("%d calls for a token in use, want once", n)
		}
		if n := known.known.Len(); n != identitiesKept {
			t.Errorf("%d tokens are kept, want %d", n, identitiesKept)
		}
		<-time.After(time.Minute) // of the test's own clock
		ask(services.Credentials{BearerToken: "used"})
		if n := authn.calls["used"]; n != 2 {
			t.Errorf("%d calls for a token after its minute, want twice", n)
		}
		for range 3 {
			ask(services.Credentials{BearerToken: "bad"})
			ask(services.Credentials{BearerToken: "with a certificate", Certificates: [][]byte{{1}}})
		}
		if authn.calls["bad"] != 3 || authn.calls["with a certificate"] != 3 {
			t.Errorf("calls: %v", authn.calls)
		}
	})
}

// bound is an authn whose results are bound to a secret.
type bound struct {
	services.Authn
	changing func() // runs while authn decides
	calls    int
	reached  int64
}

var secret = resource.Key{GroupResource: resource.GroupResource{Resource: "secrets"}, Namespace: "n", Name: "s"}

func (a *bound) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	a.calls++
	a.reached = c.NotOlderThan
	if a.changing != nil {
		a.changing()
	}
	return services.Authentication{CacheFor: time.Minute, Credential: services.Credential{Objects: []services.BoundObject{{Key: secret}}}}, nil
}

// TestIdentitiesEndWithTheirObjects: a change of what a token is bound to ends its cached result,
// also one that authn may have missed. Other changes do not.
func TestIdentitiesEndWithTheirObjects(t *testing.T) {
	authn := &bound{}
	known := NewIdentities(authn)
	ask := func(calls int, reached int64) {
		t.Helper()
		if _, err := known.Authenticate(t.Context(), services.Credentials{BearerToken: "t"}); err != nil {
			t.Fatal(err)
		}
		if authn.calls != calls || authn.reached != reached {
			t.Errorf("%d calls, the last one for the state of %d; want %d and %d", authn.calls, authn.reached, calls, reached)
		}
	}
	deleted := func(revision int64, key resource.Key) {
		known.ObjectsChanged(revision, []services.Change{{Type: services.Deleted, Object: services.Object{Key: key}}})
	}
	ask(1, 0)
	ask(1, 0)
	deleted(5, resource.Key{GroupResource: secret.GroupResource, Namespace: "n", Name: "another"})
	ask(1, 0)
	deleted(6, secret)
	ask(2, 6)
	ask(2, 6)
	known.ObjectsChanged(7, nil)
	authn.changing = func() { deleted(8, secret) }
	ask(3, 7)
	authn.changing = nil
	ask(4, 8)
	ask(4, 8)
	known.known.Purge()
	if len(known.bound.of) != 0 {
		t.Errorf("%d objects are left", len(known.bound.of))
	}
}
