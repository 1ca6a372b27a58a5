package authn_test

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// TestTokensInSecrets: at 1.36 the result names the Secret of the token, with its last use and
// whether the account lists it, and a Secret that is marked as invalid is refused. At 1.21 the
// labels mean nothing.
func TestTokensInSecrets(t *testing.T) {
	key := newKey(t)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	const prefix = "platform.io/serviceaccount/"
	token := signed(t, key, map[string]any{
		"iss": "platform/serviceaccount", "sub": "system:serviceaccount:" + namespace + ":robot", prefix + "namespace": namespace,
		prefix + "service-account.name": "robot", prefix + "service-account.uid": "u1", prefix + "secret.name": "robot-token",
	})
	cluster := fake.New(t)
	authenticators := map[string]services.Authn{}
	for _, at := range []string{"1.21", "1.36"} {
		if authenticators[at], err = startOn(t, cluster, "--service-account-key-file="+file, "--emulated-version="+at); err != nil {
			t.Fatal(err)
		}
	}
	labelled := func(labels string) string {
		manifest := secret("robot-token", "platform.io/service-account-token", map[string]string{"token": token})
		return strings.Replace(manifest, "{metadata: {", "{metadata: {uid: s1, labels: {"+labels+"}, ", 1)
	}
	used := services.LegacyToken{Secret: resource.Key{GroupResource: secrets, Namespace: namespace, Name: "robot-token"}, UID: "s1", LastUsed: "2026-01-02"}
	for _, c := range []struct {
		what, account, label string
		generated, invalid   bool
	}{
		{"of a user", "", `platform.io/legacy-token-last-used: "2026-01-02"`, false, false},
		{"of the account", ", secrets: [{name: robot-token}]", `platform.io/legacy-token-last-used: "2026-01-02"`, true, false},
		{"marked", ", secrets: [{name: robot-token}]", `platform.io/legacy-token-last-used: "2026-01-02", platform.io/legacy-token-invalid-since: "2026-02-03"`, true, true},
	} {
		cluster.Put(t, accounts, `{metadata: {name: robot, namespace: platform-system, uid: u1}`+c.account+`}`)
		cluster.Put(t, secrets, labelled(c.label))
		if got, err := authenticators["1.21"].Authenticate(t.Context(), services.Credentials{BearerToken: token}); err != nil || got.Legacy != nil {
			t.Errorf("%s, at 1.21: %+v, %v", c.what, got.Legacy, err)
		}
		want := used
		want.Generated = c.generated
		got, err := authenticators["1.36"].Authenticate(t.Context(), services.Credentials{BearerToken: token})
		if c.invalid {
			want.Generated = false // it is not reported
			if of := services.AsInvalidatedToken(err); !services.IsReason(err, services.ReasonUnauthorized) || of == nil || *of != want {
				t.Errorf("%s: %+v, %v, want %+v", c.what, of, err, want)
			}
			continue
		}
		if err != nil || got.Legacy == nil || *got.Legacy != want {
			t.Errorf("%s: %+v, %v, want %+v", c.what, got.Legacy, err, want)
		}
	}
}
