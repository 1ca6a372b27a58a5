package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-jose/go-jose/v4"
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
