package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestIssuerDocuments reads the OpenID Connect Discovery documents.
func TestIssuerDocuments(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	i := &Issuer{Name: "https://api.example"}
	if err := i.Sign(file); err != nil {
		t.Fatal(err)
	}
	get := func(i *Issuer, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		document := Documents(i)[path]
		if document == nil {
			w.Code = 404
			return w
		}
		if err := document(w, httptest.NewRequest("GET", "https://door"+path, nil)); err != nil {
			t.Fatal(err)
		}
		return w
	}
	var about struct {
		Issuer string   `json:"issuer"`
		Keys   string   `json:"jwks_uri"`
		Signed []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := json.Unmarshal(get(i, pathIssuer).Body.Bytes(), &about); err != nil {
		t.Fatal(err)
	}
	if about.Issuer != i.Name || about.Keys != "https://door/openid/v1/jwks" || len(about.Signed) != 1 || about.Signed[0] != "ES256" {
		t.Errorf("got %+v", about)
	}
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal(get(i, pathKeys).Body.Bytes(), &keys); err != nil {
		t.Fatal(err)
	}
	if len(keys.Keys) != 1 || !keys.Keys[0].IsPublic() || !key.PublicKey.Equal(keys.Keys[0].Key) {
		t.Errorf("got the keys %+v", keys)
	}
	for _, i := range []*Issuer{nil, {Name: "cluster"}} {
		if got := get(i, pathIssuer); got.Code != 404 {
			t.Errorf("%v: got %d, want 404", i, got.Code)
		}
	}
	if got := get(i, "/openid/v1"); got.Code != 404 {
		t.Errorf("another path: got %d, want 404", got.Code)
	}
}

// TestPublishedKeys replaces the signing key: tokens of the former one are accepted as long as it is
// in --service-account-key-file, so others must be able to verify them.
func TestPublishedKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, kind string, der []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	former, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	present, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signing, err := x509.MarshalECPrivateKey(present)
	signs := write("signing.key", "EC PRIVATE KEY", signing, err)
	der, err := x509.MarshalPKIXPublicKey(present.Public())
	presentKey := write("present.pub", "PUBLIC KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(former.Public())
	formerKey := write("former.pub", "PUBLIC KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(odd.Public())
	oddKey := write("odd.pub", "PUBLIC KEY", der, err)

	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Register(fs)
	if err := fs.Parse([]string{"--service-account-signing-key-file=" + signs, "--service-account-key-file=" + formerKey,
		"--service-account-key-file=" + presentKey, "--service-account-key-file=" + oddKey}); err != nil {
		t.Fatal(err)
	}
	i, err := New(&run.Node{Flags: fs, Vocabulary: vocabulary.K8s(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	keys := i.Keys().Keys
	if len(keys) != 2 || !present.PublicKey.Equal(keys[0].Key) || !former.PublicKey.Equal(keys[1].Key) || keys[1].Algorithm != "RS256" || keys[1].KeyID == keys[0].KeyID {
		t.Errorf("got the keys %+v", keys)
	}
	w := httptest.NewRecorder()
	if err := Documents(i)[pathIssuer](w, httptest.NewRequest("GET", "https://door"+pathIssuer, nil)); err != nil || !strings.Contains(w.Body.String(), `["ES256","RS256"]`) {
		t.Errorf("the algorithms: %v, %s", err, w.Body)
	}
	i.KeysURL = "https://keys.example/jwks"
	w = httptest.NewRecorder()
	if err := Documents(i)[pathIssuer](w, httptest.NewRequest("GET", "https://door"+pathIssuer, nil)); err != nil || !strings.Contains(w.Body.String(), `"jwks_uri":"https://keys.example/jwks"`) {
		t.Errorf("keys elsewhere: %v, %s", err, w.Body)
	}
	if err := fs.Set("service-account-key-file", filepath.Join(dir, "none")); err != nil {
		t.Fatal(err)
	}
	if _, err := New(&run.Node{Flags: fs, Vocabulary: vocabulary.K8s(), Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a file that does not exist was accepted")
	}
}
