package authn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/services"
)

// FuzzIDToken signs payloads, in which $iss is the URL of the issuer. Whatever it signs, it names only users and groups
// with its prefix, by tokens that are for the API and valid now. (Tokens with other signatures make the service ask the
// issuer for new keys, which it does rarely: tables of other tests have these.)
func FuzzIDToken(f *testing.F) {
	p := newProvider(f)
	a := started(f, "--authentication-config="+write(f, configHead+"jwt:\n"+p.entry("  claimMappings: {username: {claim: sub, prefix: 'one:'}, groups: {claim: roles, prefix: 'one:'}, uid: {claim: jti}}\n")))
	const valid = `{"iss":"$iss","aud":["me","you"],"sub":"ann","exp":32503680000,"roles":["dev","system:masters"],"jti":"1"`
	if _, err := awaitToken(f, a, services.Credentials{BearerToken: p.raw(f, "k", strings.Replace(valid, "$iss", p.URL, 1)+"}")}); err != nil {
		f.Fatal("a valid token does not let in: ", err)
	}
	for _, more := range []string{`}`, `,"nbf":1,"iat":1.5}`, `,"exp":1e300}`, `,"AUD":"us"}`, `,"ſub":"bob"}`, `,"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"x"}}}`, `,"sub":["a"]}`, `} {}`} {
		f.Add(valid + more)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		payload = strings.ReplaceAll(payload, "$iss", p.URL)
		token := p.raw(t, "k", payload)
		if got, err := ask(t, a, payload); err == nil && got.User.Name != services.UserAnonymous {
			t.Errorf("%q lets in %+v without a signature", payload, got.User)
		}
		got, err := ask(t, a, token)
		if err != nil {
			if !services.IsReason(err, services.ReasonUnauthorized) {
				t.Errorf("%q: %v", payload, err)
			}
			return
		}
		if err := allowed(p.URL, payload, got.User); err != nil {
			t.Errorf("%q lets in %+v: %v", payload, got.User, err)
		}
	})
}

// allowed returns an error unless a payload of an issuer may name the user.
func allowed(issuer, payload string, user services.UserInfo) error {
	var claims jwt.Claims
	if err := json.Unmarshal([]byte(payload), &claims); err != nil {
		return err
	}
	switch {
	case claims.Issuer != issuer:
		return fmt.Errorf("the issuer is %q", claims.Issuer)
	case claims.Expiry == nil || claims.Expiry.Time().Before(time.Now()):
		return fmt.Errorf("the token is expired")
	case !claims.Audience.Contains("me") && !claims.Audience.Contains("us"):
		return fmt.Errorf("the token is for %q", claims.Audience)
	case user.Name == "one:" || !strings.HasPrefix(user.Name, "one:"):
		return fmt.Errorf("the user has another name")
	case slices.ContainsFunc(user.Groups, func(g string) bool { return g != "system:authenticated" && !strings.HasPrefix(g, "one:") }):
		return fmt.Errorf("a group has no prefix")
	}
	return nil
}
