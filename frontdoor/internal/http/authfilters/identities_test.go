package authfilters

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
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
		authn, known := counting{map[string]int{}}, NewIdentities()
		ask := func(c services.Credentials) {
			t.Helper()
			a, err := known.authenticate(t.Context(), authn, c)
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
