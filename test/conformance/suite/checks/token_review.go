package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func tokenReview() {
	s := Section("TokenReview")

	s.Check("TR-01", "a virtual type: POST reviews a token; authenticated, user name, uid and groups", func(t *T) {
		s := t.Review("alice-token")
		t.Eq("authenticated", s.Bool("authenticated"), true)
		t.Eq("user.username", s.Str("user.username"), "alice")
		t.Eq("user.uid", s.Str("user.uid"), "alice-uid")
		t.SameSet("user.groups", s.Strs("user.groups"), "team-a", "team-b", "system:authenticated")
	})
	s.Check("TR-02", "an unknown token: authenticated false, no user", func(t *T) {
		s := t.Review("no-such-token")
		t.Eq("authenticated", s.Bool("authenticated"), false)
		t.Eq("user.username", s.Str("user.username"), "")
	})
	s.Check("TR-03", "version v1beta1 is served and the reply uses it", func(t *T) {
		o := t.POST(All("authentication.platform.io/v1beta1/tokenreviews"),
			`{apiVersion: authentication.platform.io/v1beta1, kind: TokenReview, spec: {token: alice-token}}`).OK().Obj()
		t.Eq("apiVersion", o.Str("apiVersion"), "authentication.platform.io/v1beta1")
		t.Eq("username", o.Str("status.user.username"), "alice")
	}, PlatformOnly("v1beta1 is gone since 1.22"))
}
