package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func proxy() {
	s := Section("Authentication: authenticating proxy")

	proxy := func(t *T) Identity { return t.Fix.ProxyCA.Client("front-proxy") }
	s.Check("PROXY-01", "user name and groups from the headers of a trusted proxy", func(t *T) {
		who := t.WhoAmI(As(proxy(t)), Header("X-Remote-User", "pia"), Header("X-Remote-Group", "g1"), Header("X-Remote-Group", "g2"))
		t.Eq("username", who.Str("username"), "pia")
		t.SameSet("groups", who.Strs("groups"), "g1", "g2", "system:authenticated")
	})
	s.Check("PROXY-02", "extra headers: the rest of the header name, lowercased and percent-decoded, is the key", func(t *T) {
		who := t.WhoAmI(As(proxy(t)), Header("X-Remote-User", "pia"),
			Header("X-Remote-Extra-Color", "red"), Header("X-Remote-Extra-Color", "blue"), Header("X-Remote-Extra-Example.com%2fRole", "boss"))
		t.Eq("extra", who.At("extra"), Obj{"color": []string{"red", "blue"}, "example.com/role": []string{"boss"}})
	})
	s.Check("PROXY-03", "without a client certificate the headers are not read", func(t *T) {
		t.Eq("username", t.WhoAmI(As(Anonymous), Header("X-Remote-User", "pia")).Str("username"), "system:anonymous")
	})
	s.Check("PROXY-04", "--requestheader-allowed-names: another common name is not trusted", func(t *T) {
		who := t.WhoAmI(As(t.Fix.ProxyCA.Client("back-proxy")), Header("X-Remote-User", "pia"))
		t.True(who == nil || who.Str("username") != "pia", "another user than pia, got %v", who)
	})
	s.Check("PROXY-05", "several user name headers: checked in order, the first with a value wins", func(t *T) {
		px := t.Fix.ProxyCA.Client("any-name")
		t.Eq("both given", t.WhoAmI(As(px), Header("X-Second-User", "two"), Header("X-First-User", "one")).Str("username"), "one")
		t.Eq("second only", t.WhoAmI(As(px), Header("X-Second-User", "two")).Str("username"), "two")
	}, On(Alt))
	s.Check("PROXY-06", "allowed names empty means any common name", func(t *T) {
		t.Eq("username", t.WhoAmI(As(t.Fix.ProxyCA.Client(t.Name("whoever"))), Header("X-First-User", "pia")).Str("username"), "pia")
	}, On(Alt))
	s.Check("PROXY-07", "several extra header prefixes", func(t *T) {
		who := t.WhoAmI(As(t.Fix.ProxyCA.Client("x")), Header("X-First-User", "pia"), Header("X-Ex-A", "1"), Header("X-More-B", "2"))
		t.Eq("extra", who.At("extra"), Obj{"a": []string{"1"}, "b": []string{"2"}})
	}, On(Alt))
}
