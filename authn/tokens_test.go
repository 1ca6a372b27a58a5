package authn_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

const namespace = "platform-system" // the system namespace

var (
	secrets  = resource.GroupResource{Resource: "secrets"}
	accounts = resource.GroupResource{Resource: "serviceaccounts"}
	pods     = resource.GroupResource{Resource: "pods"}
)

func TestBootstrapTokens(t *testing.T) {
	const token = "abcdef.0123456789abcdef"
	good := map[string]string{
		"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:workers", "expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}
	cluster := fake.New(t)
	a, err := startOn(t, cluster, "--enable-bootstrap-token-auth")
	if err != nil {
		t.Fatal(err)
	}
	ask := services.Credentials{BearerToken: token}
	for _, c := range []struct {
		name       string
		key, value string
		want       bool
	}{
		{"a good token", "description", "for tests", true},
		{"one that has expired", "expiration", time.Now().Add(-time.Second).UTC().Format(time.RFC3339), false},
		{"one with an unreadable end", "expiration", "tomorrow", false},
		{"one for signing only", "usage-bootstrap-authentication", "false", false},
		{"another secret", "token-secret", "fedcba9876543210", false},
		{"a group that a token must not grant", "auth-extra-groups", "system:masters", false},
	} {
		data := maps.Clone(good)
		data[c.key] = c.value
		cluster.Put(t, secrets, secret("bootstrap-token-abcdef", "bootstrap.platform.io/token", data))
		got, err := a.Authenticate(t.Context(), ask)
		if c.want != (err == nil) || !c.want && !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if c.want && (got.User.Name != "system:bootstrap:abcdef" ||
			strings.Join(got.User.Groups, " ") != "system:bootstrappers system:bootstrappers:workers system:authenticated") {
			t.Errorf("%s: %+v", c.name, got.User)
		}
	}
	cluster.Delete(resource.Key{GroupResource: secrets, Namespace: namespace, Name: "bootstrap-token-abcdef"})
	if _, err := a.Authenticate(t.Context(), ask); !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("a deleted token: %v", err)
	}
}

func TestServiceAccountTokens(t *testing.T) {
	key := newKey(t)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	cluster := fake.New(t)
	a, err := startOn(t, cluster, "--service-account-key-file="+file)
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "platform.io/serviceaccount/"
	kept := func(key *ecdsa.PrivateKey) string {
		return signed(t, key, map[string]any{
			"iss": "platform/serviceaccount", "sub": "system:serviceaccount:" + namespace + ":robot", prefix + "namespace": namespace,
			prefix + "service-account.name": "robot", prefix + "service-account.uid": "u1", prefix + "secret.name": "robot-token",
		})
	}
	bound := func(audience string, lifetime time.Duration) string {
		return signed(t, key, map[string]any{
			"iss": "https://platform.default.svc", "sub": "system:serviceaccount:" + namespace + ":robot", "aud": []string{audience},
			"exp":         time.Now().Add(lifetime).Unix(),
			"platform.io": map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "robot", "uid": "u1"}},
		})
	}
	warnAfter := time.Now().Add(-time.Minute).Truncate(time.Second)
	stale := signed(t, key, map[string]any{
		"iss": "https://platform.default.svc", "sub": "system:serviceaccount:" + namespace + ":robot", "aud": []string{"https://platform.default.svc"},
		"exp":         time.Now().Add(time.Hour).Unix(),
		"platform.io": map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "robot", "uid": "u1"}, "warnafter": warnAfter.Unix()},
	})
	token := kept(key)
	ask := func(token string) error {
		got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: token})
		if want := "system:serviceaccount:" + namespace + ":robot"; err == nil && (got.User.Name != want || len(got.User.Groups) != 3) {
			t.Errorf("got %+v", got.User)
		}
		return err
	}
	wantRefused := func(what, token string) {
		t.Helper()
		if err := ask(token); !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantRefused("no account yet", token)
	cluster.Put(t, accounts, `{metadata: {name: robot, namespace: platform-system, uid: u1}}`)
	cluster.Put(t, secrets, secret("robot-token", "platform.io/service-account-token", map[string]string{"token": token}))
	if err := ask(token); err != nil {
		t.Error(err)
	}
	if err := ask(bound("https://platform.default.svc", time.Hour)); err != nil {
		t.Error(err)
	}
	// The audiences of a result are those of the token that are requested, or that are of the API.
	const api = "https://platform.default.svc"
	for _, c := range []struct {
		token      string
		asks, want []string
	}{
		{bound(api, time.Hour), nil, []string{api}}, {bound(api, time.Hour), []string{"vault", api}, []string{api}},
		{bound("vault", time.Hour), []string{"vault", api}, []string{"vault"}}, {bound("vault", time.Hour), nil, nil},
		{bound(api, time.Hour), []string{"vault"}, nil}, {token, nil, []string{api}}, {token, []string{"vault"}, nil},
	} {
		got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: c.token, Audiences: c.asks})
		if (err == nil) != (c.want != nil) || !slices.Equal(got.Audiences, c.want) {
			t.Errorf("asked for %q: %q, %v, want %q", c.asks, got.Audiences, err, c.want)
		}
	}
	if got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: stale}); err != nil || !got.WarnAfter.Equal(warnAfter) {
		t.Errorf("a token that should have been replaced: %+v, %v", got, err)
	}
	// A pod that is being deleted has its token for as long as its grace period and a minute.
	ofPod := signed(t, key, map[string]any{
		"iss": "https://platform.default.svc", "sub": "system:serviceaccount:" + namespace + ":robot", "aud": []string{"https://platform.default.svc"},
		"exp": time.Now().Add(time.Hour).Unix(),
		"platform.io": map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "robot", "uid": "u1"},
			"pod": map[string]any{"name": "web", "uid": "p1"}},
	})
	ends := func(at time.Time) string {
		return "{metadata: {name: web, namespace: platform-system, uid: p1, deletionTimestamp: \"" + at.UTC().Format(time.RFC3339) + "\"}}"
	}
	cluster.Put(t, pods, ends(time.Now().Add(30*time.Second)))
	if err := ask(ofPod); err != nil {
		t.Errorf("a pod in its grace period: %v", err)
	}
	cluster.Put(t, pods, ends(time.Now().Add(-2*time.Minute)))
	wantRefused("a pod after its grace period", ofPod)
	wantRefused("for another audience", bound("vault", time.Hour))
	wantRefused("out of date", bound("https://platform.default.svc", -time.Hour))
	wantRefused("another key", kept(newKey(t)))
	cluster.Delete(resource.Key{GroupResource: secrets, Namespace: namespace, Name: "robot-token"})
	wantRefused("a deleted secret", token)
	cluster.Put(t, accounts, `{metadata: {name: robot, namespace: platform-system, uid: u2}}`)
	wantRefused("another account of that name", bound("https://platform.default.svc", time.Hour))
}

// TestExtraOfTokens: the extra values of a user are those of the release, whichever release has issued
// the token.
func TestExtraOfTokens(t *testing.T) {
	key := newKey(t)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	const domain = "authentication.platform.io/"
	token := func(bound map[string]any) string {
		bound["namespace"], bound["serviceaccount"] = namespace, map[string]any{"name": "robot", "uid": "u1"}
		claims := map[string]any{"iss": "https://platform.default.svc", "sub": "system:serviceaccount:" + namespace + ":robot",
			"aud": []string{"https://platform.default.svc"}, "exp": time.Now().Add(time.Hour).Unix(), "platform.io": bound}
		if id := bound["id"]; id != nil {
			claims["jti"] = id
		}
		return signed(t, key, claims)
	}
	kept := signed(t, key, map[string]any{"iss": "platform/serviceaccount", "sub": "system:serviceaccount:" + namespace + ":robot", "jti": "t2",
		"platform.io/serviceaccount/namespace": namespace, "platform.io/serviceaccount/service-account.name": "robot",
		"platform.io/serviceaccount/service-account.uid": "u1", "platform.io/serviceaccount/secret.name": "robot-token"})
	pod, node := map[string]any{"name": "web", "uid": "p1"}, map[string]any{"name": "n1", "uid": "n2"}
	of, on := map[string][]string{domain + "pod-name": {"web"}, domain + "pod-uid": {"p1"}}, map[string][]string{domain + "node-name": {"n1"}, domain + "node-uid": {"n2"}}
	for what, c := range map[string]struct {
		token string
		want  map[string][]string
		since map[string][]string // at 1.36, too
	}{
		"an account":          {token(map[string]any{}), nil, nil},
		"a pod":               {token(map[string]any{"pod": pod}), of, nil},
		"a pod and its node":  {token(map[string]any{"pod": pod, "node": node}), of, on},
		"a token with an ID":  {token(map[string]any{"pod": pod, "id": "t1"}), of, map[string][]string{domain + "credential-id": {"JTI=t1"}}},
		"a token in a Secret": {kept, nil, nil},
	} {
		for _, release := range []string{"1.21", "1.36"} {
			cluster := fake.New(t)
			cluster.Put(t, accounts, `{metadata: {name: robot, namespace: platform-system, uid: u1}}`)
			cluster.Put(t, pods, `{metadata: {name: web, namespace: platform-system, uid: p1}}`)
			cluster.Put(t, secrets, secret("robot-token", "platform.io/service-account-token", map[string]string{"token": kept}))
			a, err := startOn(t, cluster, "--service-account-key-file="+file, "--emulated-version="+release)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]string{}
			maps.Copy(want, c.want)
			if release == "1.36" {
				maps.Copy(want, c.since)
			}
			got, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: c.token})
			if err != nil || !maps.EqualFunc(got.User.Extra, want, slices.Equal) {
				t.Errorf("%s, %s: %v, %v, want %v", release, what, got.User.Extra, err, want)
			}
		}
	}
}

// TestTokensOfNodes: a token that is bound to a node ends with it, whichever release is emulated.
func TestTokensOfNodes(t *testing.T) {
	key := newKey(t)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	token := signed(t, key, map[string]any{"iss": "https://platform.default.svc", "sub": "system:serviceaccount:" + namespace + ":robot",
		"aud": []string{"https://platform.default.svc"}, "exp": time.Now().Add(time.Hour).Unix(), "platform.io": map[string]any{"namespace": namespace,
			"serviceaccount": map[string]any{"name": "robot", "uid": "u1"}, "node": map[string]any{"name": "n1", "uid": "n-1"}}})
	nodes := resource.GroupResource{Resource: "nodes"}
	const domain = "authentication.platform.io/"
	for release, want := range map[string]map[string][]string{"1.21": nil, "1.36": {domain + "node-name": {"n1"}, domain + "node-uid": {"n-1"}}} {
		cluster := fake.New(t)
		cluster.Put(t, accounts, `{metadata: {name: robot, namespace: platform-system, uid: u1}}`)
		a, err := startOn(t, cluster, "--service-account-key-file="+file, "--emulated-version="+release)
		if err != nil {
			t.Fatal(err)
		}
		ask := func() (services.Authentication, error) {
			return a.Authenticate(t.Context(), services.Credentials{BearerToken: token})
		}
		refused := func(what string) {
			t.Helper()
			if got, err := ask(); !services.IsReason(err, services.ReasonUnauthorized) {
				t.Errorf("%s, %s: %+v, %v", release, what, got, err)
			}
		}
		refused("no such node")
		cluster.Put(t, nodes, `{metadata: {name: n1, uid: n-2}}`)
		refused("another node of that name")
		cluster.Put(t, nodes, `{metadata: {name: n1, uid: n-1}}`)
		got, err := ask()
		bound := services.BoundObject{Key: resource.Key{GroupResource: nodes, Name: "n1"}, UID: "n-1"}
		if err != nil || !maps.EqualFunc(got.User.Extra, want, slices.Equal) || !slices.Contains(got.Credential.Objects, bound) {
			t.Errorf("%s: %+v, %v", release, got, err)
		}
		cluster.Put(t, nodes, `{metadata: {name: n1, uid: n-1, deletionTimestamp: "`+time.Now().Add(-2*time.Minute).UTC().Format(time.RFC3339)+`"}}`)
		refused("a node that is being deleted")
		cluster.Delete(bound.Key)
		refused("a deleted node")
	}
}

// TestIssuersInRotation: the tokens of all issuers are accepted, for any of them as audience.
func TestIssuersInRotation(t *testing.T) {
	key := newKey(t)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	cluster := fake.New(t)
	cluster.Put(t, accounts, `{metadata: {name: robot, namespace: platform-system, uid: u1}}`)
	a, err := startOn(t, cluster, "--service-account-key-file="+file, "--service-account-issuer=https://new", "--service-account-issuer=https://old,with-comma")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		issuer, audience string
		want             bool
	}{
		{"https://new", "https://new", true},
		{"https://old,with-comma", "https://old,with-comma", true},
		{"https://old,with-comma", "https://new", true},
		{"https://old", "https://new", false},
		{"https://platform.default.svc", "https://new", false},
		{"https://new", "https://platform.default.svc", false},
	} {
		_, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: signed(t, key, map[string]any{
			"iss": c.issuer, "sub": "system:serviceaccount:" + namespace + ":robot", "aud": []string{c.audience}, "exp": time.Now().Add(time.Hour).Unix(),
			"platform.io": map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "robot", "uid": "u1"}},
		})})
		if c.want != (err == nil) || !c.want && !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("issued by %s for %s: %v", c.issuer, c.audience, err)
		}
	}
	for _, flags := range [][]string{
		{"--service-account-issuer=a", "--service-account-issuer=a"}, {"--service-account-issuer=https://a b:%"},
	} {
		if _, err := start(t, append(flags, "--service-account-key-file="+file)...); err == nil || !strings.Contains(err.Error(), "--service-account-issuer") {
			t.Errorf("%v: %v", flags, err)
		}
	}
}

func signed(t *testing.T, key *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	return signedWith(t, jose.ES256, key, claims)
}

func signedWith(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func secret(name, kind string, data map[string]string) string {
	var cells []string
	for key, value := range data {
		cells = append(cells, key+": "+base64.StdEncoding.EncodeToString([]byte(value)))
	}
	return fmt.Sprintf("{metadata: {name: %s, namespace: %s}, type: %s, data: {%s}}", name, namespace, kind, strings.Join(cells, ", "))
}
