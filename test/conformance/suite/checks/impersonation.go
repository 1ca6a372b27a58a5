package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func impersonation() {
	s := Section("Impersonation")

	s.Check("IMP-01", "Impersonate-User and Impersonate-Group (repeatable): user info is replaced", func(t *T) {
		who := t.WhoAmI(Impersonate("ivan", "dev", "ops"))
		t.Eq("username", who.Str("username"), "ivan")
		t.SameSet("groups", who.Strs("groups"), "dev", "ops", "system:authenticated")
	})
	s.Check("IMP-02", "Impersonate-Extra-<extra_name>: extra field", func(t *T) {
		who := t.WhoAmI(Impersonate("ivan"), Header("Impersonate-Extra-Color", "red"), Header("Impersonate-Extra-Color", "blue"))
		t.Eq("extra", who.At("extra"), Obj{"color": []string{"red", "blue"}})
	})
	alice := Token("alice-token")
	s.Check("IMP-03", "without permission the result is 403 Forbidden", func(t *T) {
		t.GET("/version", As(alice)).Is(200)
		t.GET("/version", As(alice), Impersonate("bob")).Status(403, "Forbidden")
	})
	s.Check("IMP-04", "the caller needs impersonate on users; resourceNames restricts the allowed values", func(t *T) {
		u := t.User()
		t.Grant(u.Name, `[{apiGroups: [""], resources: [users], resourceNames: [ivan], verbs: [impersonate]}]`)
		r := t.Allowed(func() *Resp { return t.GET("/version", As(u), Impersonate("ivan")) })
		r.Is(200)
		t.GET("/version", As(u), Impersonate("igor")).Is(403)
	})
	s.Check("IMP-05", "the caller needs impersonate on userextras/<extra_name> (group authentication.platform.io)", func(t *T) {
		u := t.User()
		t.Grant(u.Name, `[{apiGroups: [""], resources: [users], verbs: [impersonate]}, {apiGroups: [authentication.platform.io], resources: [userextras/color], resourceNames: [red], verbs: [impersonate]}]`)
		with := func(name, value string) *Resp {
			return t.GET("/version", As(u), Impersonate("ivan"), Header("Impersonate-Extra-"+name, value))
		}
		t.Allowed(func() *Resp { return with("Color", "red") }).Is(200)
		with("Color", "green").Is(403)
		with("Shape", "red").Is(403)
	})
	s.Check("IMP-06", "Impersonate-Group requires Impersonate-User", func(t *T) {
		r := t.GET("/version", Header("Impersonate-Group", "dev"))
		t.True(r.Code >= 400, "an error status, got %d", r.Code)
	})
	s.Check("IMP-07", "Impersonate-Extra requires Impersonate-User", func(t *T) {
		r := t.GET("/version", Header("Impersonate-Extra-Color", "red"))
		t.True(r.Code >= 400, "an error status, got %d", r.Code)
	})
	s.Check("IMP-08", "the caller is authenticated first: an invalid token gets 401", func(t *T) {
		t.GET("/version", As(Token("wrong")), Impersonate("ivan")).Is(401)
	})
	s.Check("IMP-09", "acting as system:masters gives its permissions", func(t *T) {
		t.GET("/api/v1/secrets", Impersonate("ivan", "system:masters")).Is(200)
	})
}
