package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func staticTokens() {
	s := Section("Authentication: static token file")

	s.Check("TOK-01", "columns token, user name, user uid, several groups in one double-quoted cell", func(t *T) {
		who := t.WhoAmI(As(Token("alice-token")))
		t.Eq("username", who.Str("username"), "alice")
		t.Eq("uid", who.Str("uid"), "alice-uid")
		t.SameSet("groups", who.Strs("groups"), "team-a", "team-b", "system:authenticated")
	})
	s.Check("TOK-02", "optional group names: none", func(t *T) {
		t.SameSet("groups", t.WhoAmI(As(Token("carol-token"))).Strs("groups"), "system:authenticated")
	})
	s.Check("TOK-03", "an invalid bearer token gets 401", func(t *T) {
		t.Unauthorized(Token("alice-tokem"))
		t.Unauthorized(Token("alice-token-and-more"))
	})
	s.Check("TOK-04", "401 has a Status body", func(t *T) {
		o := t.GET("/api", As(Token("wrong"))).Status(401, "Unauthorized")
		t.Eq("message", o.Str("message"), "Unauthorized")
	})
}
