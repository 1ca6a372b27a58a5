package subresources

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/issuer"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// TestTokenIDs: since release 1.32 each token has an ID of its own, which is in the audit log.
func TestTokenIDs(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		b := newBench(t)
		b.engine, b.audit = handlertest.EngineOf(t, r), &audit.Record{}
		b.keep(resource.GroupResource{Resource: "serviceaccounts"}, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bob","namespace":"default","uid":"u"}}`)
		last := ""
		for range 2 {
			answer, err := b.post("serviceaccounts/bob/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.ParseSigned(tree.Text(answer, "status", "token"), []jose.SignatureAlgorithm{jose.ES256})
			if err != nil {
				t.Fatal(err)
			}
			var standard jwt.Claims
			if err := token.Claims(&b.key.PublicKey, &standard); err != nil {
				t.Fatal(err)
			}
			want := ""
			if standard.ID != "" {
				want = "JTI=" + standard.ID
			}
			if got := b.audit.Annotations()["authentication.kubernetes.io/issued-credential-id"]; got != want || (want == "") != (r == release.V121) || want != "" && want == last {
				t.Errorf("%s: the audit log has %q, the token %q; the token before %q", r, got, standard.ID, last)
			}
			last = want
		}
	}
}

// TestTokenLifetimes requests tokens with bounded and extended lifetimes.
func TestTokenLifetimes(t *testing.T) {
	b := newBench(t)
	b.keep(resource.GroupResource{Resource: "serviceaccounts"}, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bob","namespace":"default","uid":"u"}}`)
	b.pod("p", `,"spec":{"serviceAccountName":"bob"}`)
	const year = 365 * 24 * 3600
	for _, c := range []struct {
		what                  string
		lifetimes             issuer.Lifetimes
		requested             int
		ofPod                 bool
		promised, valid, warn int
	}{
		{"no limit", issuer.Lifetimes{}, 100_000, false, 100_000, 100_000, 0},
		{"below the limit", issuer.Lifetimes{Max: 2 * time.Hour}, 7199, false, 7199, 7199, 0},
		{"above the limit", issuer.Lifetimes{Max: 2 * time.Hour}, 7201, true, 7200, 7200, 0},
		{"extended", issuer.Lifetimes{Extend: true}, 3607, true, 3607, year, 3607},
		{"extended beyond the limit", issuer.Lifetimes{Extend: true, Max: 2 * time.Hour}, 3607, true, 3607, year, 3607},
		{"not extended: off", issuer.Lifetimes{}, 3607, true, 3607, 3607, 0},
		{"not extended: another lifetime", issuer.Lifetimes{Extend: true}, 3608, true, 3608, 3608, 0},
		{"not extended: of no pod", issuer.Lifetimes{Extend: true}, 3607, false, 3607, 3607, 0},
		{"not extended: below it by the limit", issuer.Lifetimes{Extend: true, Max: time.Hour}, 3607, true, 3600, 3600, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			b.handlers.Tokens.Lifetimes = c.lifetimes
			spec := fmt.Sprintf(`"expirationSeconds":%d`, c.requested)
			if c.ofPod {
				spec += `,"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}`
			}
			answer, err := b.post("serviceaccounts/bob/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{`+spec+`}}`)
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.ParseSigned(tree.Text(answer, "status", "token"), []jose.SignatureAlgorithm{jose.ES256})
			if err != nil {
				t.Fatal(err)
			}
			var standard jwt.Claims
			var domain struct {
				K issuer.Subject `json:"kubernetes.io"`
			}
			if err := token.Claims(&b.key.PublicKey, &standard, &domain); err != nil {
				t.Fatal(err)
			}
			if valid := standard.Expiry.Time().Sub(now); valid != time.Duration(c.valid)*time.Second {
				t.Errorf("the token is valid for %v, want %d s", valid, c.valid)
			}
			warn := 0
			if domain.K.WarnAfter != nil {
				warn = int(domain.K.WarnAfter.Time().Sub(now).Seconds())
			}
			if warn != c.warn {
				t.Errorf("warning after %d s, want %d", warn, c.warn)
			}
			if got, want := tree.Text(answer, "status", "expirationTimestamp"), now.Add(time.Duration(c.promised)*time.Second).Format(time.RFC3339); got != want {
				t.Errorf("the response says %s, want %s", got, want)
			}
			if got := fmt.Sprint(tree.Object(answer, "spec")["expirationSeconds"]); got != fmt.Sprint(c.promised) {
				t.Errorf("spec.expirationSeconds is %s, want %d", got, c.promised)
			}
		})
	}
}
