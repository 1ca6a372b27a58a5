package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func webhookTokens() {
	s := Section("Authentication: webhook token")

	s.Check("HOOK-01", "the service POSTs a TokenReview with spec.token, in the version of the flag", func(t *T) {
		tok := t.Name("tok")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": true, "user": Obj{"username": "hanna", "uid": "h-1", "groups": []string{"g1", "g2"}, "extra": Obj{"color": []string{"red", "blue"}}}})
		who := t.WhoAmI(As(Token(tok)))
		t.Eq("username", who.Str("username"), "hanna")
		t.Eq("uid", who.Str("uid"), "h-1")
		t.SameSet("groups", who.Strs("groups"), "g1", "g2", "system:authenticated")
		t.Eq("extra", who.At("extra"), Obj{"color": []string{"red", "blue"}})
		calls := t.Fix.Hook.Calls(tok)
		t.True(len(calls) > 0, "a call of the webhook")
		t.Eq("method", calls[0].Method, "POST")
		t.Eq("apiVersion", calls[0].Review.Str("apiVersion"), "authentication.platform.io/v1")
		t.Eq("kind", calls[0].Review.Str("kind"), "TokenReview")
	}, On(Hooked))
	s.Check("HOOK-02", "--authentication-token-webhook-version: default v1beta1", func(t *T) {
		tok := t.Name("tok")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": true, "user": Obj{"username": "hanna"}})
		t.Eq("username", t.WhoAmI(As(Token(tok))).Str("username"), "hanna")
		t.Eq("apiVersion", t.Fix.Hook.Calls(tok)[0].Review.Str("apiVersion"), "authentication.platform.io/v1beta1")
	}, On(Alt))
	s.Check("HOOK-03", "authenticated false: 401", func(t *T) {
		tok := t.Name("tok")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": false, "user": Obj{"username": "hanna"}})
		t.Unauthorized(Token(tok))
	}, On(Hooked))
	s.Check("HOOK-08", "authenticated false: 401 with the error text of the reply", func(t *T) {
		tok := t.Name("tok")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": false, "error": "this badge has expired"})
		t.Contains("message", t.GET("/api", As(Token(tok))).Status(401, "Unauthorized").Str("message"), "this badge has expired")
		tok = t.Name("tok")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": true, "error": "ignored", "user": Obj{"username": "hanna"}})
		t.Eq("username", t.WhoAmI(As(Token(tok))).Str("username"), "hanna")
	}, On(Hooked), PlatformOnly("the original keeps the text to itself"))
	s.Check("HOOK-04", "decisions are cached for --authentication-token-webhook-cache-ttl", func(t *T) {
		tok := t.Name("tok")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": true, "user": Obj{"username": "hanna"}})
		for range 5 {
			t.Eq("username", t.WhoAmI(As(Token(tok))).Str("username"), "hanna")
		}
		t.Eq("calls of the webhook for 5 requests", len(t.Fix.Hook.Calls(tok)), 1)
		t.Fix.Hook.Answer(tok, Obj{"authenticated": true, "user": Obj{"username": "hugo"}})
		t.Until(15*time.Second, "a new decision after the cache time of 4s", func() bool {
			return t.WhoAmI(As(Token(tok))).Str("username") == "hugo"
		})
	}, On(Hooked))
	s.Check("HOOK-05", "the service calls with the client certificate of the config file", func(t *T) {
		tok := t.Name("tok")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": true, "user": Obj{"username": "hanna"}})
		t.WhoAmI(As(Token(tok)))
		t.Eq("common name of the caller", t.Fix.Hook.Calls(tok)[0].ClientCert, "apiserver-as-hook-client")
	}, On(Hooked))
	s.Check("HOOK-06", "a token known to another method needs no remote answer", func(t *T) {
		t.Eq("username", t.WhoAmI(As(Token("alice-token"))).Str("username"), "alice")
	}, On(Hooked))
	s.Check("HOOK-07", "a user of the webhook is authorized like any other", func(t *T) {
		tok, name := t.Name("tok"), t.Name("hanna")
		t.Fix.Hook.Answer(tok, Obj{"authenticated": true, "user": Obj{"username": name}})
		t.GET(In("default", "configmaps"), As(Token(tok))).Status(403, "Forbidden")
		t.Grant(name, ReadConfigMaps)
		t.Allowed(func() *Resp { return t.GET(In("default", "configmaps"), As(Token(tok))) }).Is(200)
	}, On(Hooked))
}
