package checks

import (
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func bootstrapTokens() {
	s := Section("Bootstrap tokens")

	auth := []string{"usage-bootstrap-authentication", "true"}
	s.Check("BOOT-01", "username system:bootstrap:<token_id>; group system:bootstrappers", func(t *T) {
		token, _ := t.BootstrapToken(auth...)
		who := t.Accepted(token)
		t.Eq("username", who.Str("username"), "system:bootstrap:"+token[:6])
		t.Includes("groups", who.Strs("groups"), "system:bootstrappers", "system:authenticated")
	})
	s.Check("BOOT-02", "extra groups from the secret", func(t *T) {
		token, _ := t.BootstrapToken(append(auth, "auth-extra-groups", "system:bootstrappers:ingress,system:bootstrappers:worker")...)
		t.Includes("groups", t.Accepted(token).Strs("groups"), "system:bootstrappers", "system:bootstrappers:ingress", "system:bootstrappers:worker")
	})
	s.Check("BOOT-03", "usage-bootstrap-authentication: true enables authentication use (absent: 401)", func(t *T) {
		token, _ := t.BootstrapToken("usage-bootstrap-signing", "true")
		good, _ := t.BootstrapToken(auth...)
		t.Accepted(good)
		t.Rejected(token)
	})
	s.Check("BOOT-04", "expiration time reached: rejected for authentication", func(t *T) {
		token, _ := t.BootstrapToken(append(auth, "expiration", Ago(-4*time.Second))...)
		t.Accepted(token)
		t.Sleep(4 * time.Second)
		t.Rejected(token)
	})
	s.Check("BOOT-05", "expired token, cleaner enabled: the secret is removed", func(t *T) {
		_, path := t.BootstrapToken(append(auth, "expiration", Ago(-2*time.Second))...)
		t.Gone(path, 30*time.Second)
	})
	s.Check("BOOT-06", "extra groups must start with system:bootstrappers:", func(t *T) {
		token, _ := t.BootstrapToken(append(auth, "auth-extra-groups", "system:masters")...)
		good, _ := t.BootstrapToken(auth...)
		t.Accepted(good)
		if who := t.WhoAmI(As(Identity{Token: token})); who != nil {
			t.True(!strings.Contains(who.String(), "system:masters"), "group system:masters not to be given, got %v", who.Strs("groups"))
		}
	})
	s.Check("BOOT-07", "the secret is in namespace platform-system; elsewhere it is no token", func(t *T) {
		id, secret := RandomID(6), RandomID(16)
		t.POST(t.In("secrets"), YAML(`
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-%s}
type: bootstrap.platform.io/token
stringData: {token-id: "%s", token-secret: "%s", usage-bootstrap-authentication: "true"}`, id, id, secret)).OK()
		good, _ := t.BootstrapToken(auth...)
		t.Accepted(good)
		t.Rejected(id + "." + secret)
	})
	s.Check("BOOT-08", "without --enable-bootstrap-token-auth a bootstrap token is no credential", func(t *T) {
		token, _ := t.BootstrapToken(auth...)
		t.Sleep(time.Second)
		t.Eq("identity", t.WhoAmI(As(Identity{Token: token})), Obj(nil))
	}, On(Minimal))
	s.Check("BOOT-09", "token string format: [a-z0-9]{6}.[a-z0-9]{16}", func(t *T) {
		good, _ := t.BootstrapToken(auth...)
		t.Accepted(good)
		for _, bad := range []string{good[:22], good + "x", good[:6] + good[7:], good[:6] + ":" + good[7:], strings.ToUpper(good)} {
			t.Unauthorized(Token(bad))
		}
	})
	s.Check("BOOT-10", "a secret of another type is no token", func(t *T) {
		id, secret := RandomID(6), RandomID(16)
		t.POST(In("platform-system", "secrets"), YAML(`
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-%s}
type: Opaque
stringData: {token-id: "%s", token-secret: "%s", usage-bootstrap-authentication: "true"}`, id, id, secret)).OK()
		good, _ := t.BootstrapToken(auth...)
		t.Accepted(good)
		t.Unauthorized(Token(id + "." + secret))
	})
}
