package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func openID() {
	s := Section("Authentication: OpenID Connect")

	s.Check("OIDC-01", "username claim sub by default, prefixed with <issuer_url>#; groups claim", func(t *T) {
		who := t.Accepted(t.Fix.IDToken(Obj{"sub": "ann", "groups": []string{"g1", "g2"}}))
		t.Eq("username", who.Str("username"), t.Fix.OIDC.URL+"#ann")
		t.SameSet("groups", who.Strs("groups"), "g1", "g2", "system:authenticated")
	})
	for _, c := range []struct {
		id, rule string
		claims   Obj
	}{
		{"OIDC-02", "expiry (exp) is checked", Obj{"sub": "ann", "iat": time.Now().Unix() - 900, "exp": time.Now().Unix() - 300}},
		{"OIDC-03", "client id all tokens must be issued for", Obj{"sub": "ann", "aud": "another-client"}},
		{"OIDC-04", "the service trusts a single issuer", Obj{"sub": "ann", "iss": "https://127.0.0.1:1"}},
	} {
		s.Check(c.id, c.rule, func(t *T) {
			t.Accepted(t.Fix.IDToken(Obj{"sub": "good"}))
			t.Unauthorized(Token(t.Fix.IDToken(c.claims)))
		})
	}
	s.Check("OIDC-05", "--oidc-groups-claim: if present must be an array of strings", func(t *T) {
		t.Accepted(t.Fix.IDToken(Obj{"sub": "good"}))
		t.Unauthorized(Token(t.Fix.IDToken(Obj{"sub": "ann", "groups": Obj{"g1": true}})))
		t.Unauthorized(Token(t.Fix.IDToken(Obj{"sub": "ann", "groups": []int{1, 2}})))
	})
	const gold = "gold"
	alt := func(more Obj) Obj {
		claims := Obj{"email": "ann@example.com", "email_verified": true, "tenant": "blue", "level": gold}
		for k, v := range more {
			claims[k] = v
		}
		return claims
	}
	s.Check("OIDC-06", "--oidc-username-claim=email: no issuer prefix", func(t *T) {
		t.Eq("username", t.Accepted(t.Fix.IDToken(alt(nil))).Str("username"), "ann@example.com")
	}, On(Alt))
	s.Check("OIDC-07", "--oidc-groups-claim and --oidc-groups-prefix", func(t *T) {
		who := t.Accepted(t.Fix.IDToken(alt(Obj{"roles": []string{"a", "b"}, "groups": []string{"not-these"}})))
		t.SameSet("groups", who.Strs("groups"), "oidc:a", "oidc:b", "system:authenticated")
	}, On(Alt))
	s.Check("OIDC-08", "--oidc-username-claim and --oidc-username-prefix", func(t *T) {
		t.Eq("username", t.Accepted(t.Fix.IDToken(Obj{"nick": "ace", "sub": "ann"})).Str("username"), "corp:ace")
	}, On(Hooked))
	s.Check("OIDC-09", "--oidc-username-prefix=- disables prefixing", func(t *T) {
		t.Eq("username", t.Accepted(t.Fix.IDToken(Obj{"nick": "ace"})).Str("username"), "ace")
	}, On(Minimal))
	s.Check("OIDC-10", "--oidc-issuer-url: https only", func(t *T) {
		t.Refuses("--oidc-issuer-url=http://127.0.0.1:1", "--oidc-client-id=x")
	}, On(Minimal))
	for id, claims := range map[string]Obj{
		"OIDC-11": {"sub": "ann", "iat": time.Now().Unix() + 3600},
		"OIDC-12": {"sub": "ann", "iat": nil},
	} {
		s.Check(id, "iat is checked: a token from the future, or without the claim, is refused", func(t *T) {
			t.Accepted(t.Fix.IDToken(Obj{"sub": "good"}))
			t.Unauthorized(Token(t.Fix.IDToken(claims)))
		}, PlatformOnly("no release checks it"))
	}
}
