package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func anonymous() {
	s := Section("Authentication: anonymous")

	s.Check("ANON-01", "a request with no token is anonymous: system:anonymous, group system:unauthenticated", func(t *T) {
		who := t.WhoAmI(As(Anonymous))
		t.Eq("username", who.Str("username"), "system:anonymous")
		t.SameSet("groups", who.Strs("groups"), "system:unauthenticated")
	})
	s.Check("ANON-02", "a request with an invalid bearer token gets 401, not anonymous access", func(t *T) {
		t.GET("/version", As(Anonymous)).Is(200)
		t.GET("/version", As(Token("wrong"))).Is(401)
	})
	s.Check("ANON-03", "anonymous access needs explicit grants", func(t *T) {
		t.GET("/api/v1/namespaces", As(Anonymous)).Status(403, "Forbidden")
	})
	s.Check("ANON-04", "--anonymous-auth=false: a request with no credentials gets 401", func(t *T) {
		t.GET("/api/v1/namespaces", As(Anonymous)).Status(401, "Unauthorized")
		t.GET("/version", As(Anonymous)).Is(401)
	}, On(Alt))
}
