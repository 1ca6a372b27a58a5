package tokenkey_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/portico-platform/portico/services/tokenkey"
)

func TestRead(t *testing.T) {
	small, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	classic, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := write(t, "PUBLIC KEY", must(x509.MarshalPKIXPublicKey(small.Public())))
	for _, x := range []struct {
		file      string
		key       crypto.Signer
		algorithm string // empty: refused
	}{
		{write(t, "EC PRIVATE KEY", must(x509.MarshalECPrivateKey(small))), small, "ES256"},
		{write(t, "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(large))), large, "ES512"},
		{write(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(classic)), classic, "RS256"},
		{write(t, "EC PRIVATE KEY", must(x509.MarshalECPrivateKey(odd))), odd, ""},
		{write(t, "PRIVATE KEY", []byte("nonsense")), nil, ""},
	} {
		key, err := tokenkey.Read(public, x.file)
		if x.algorithm == "" {
			if err == nil {
				t.Errorf("%s was taken", x.file)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if equal := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !equal.Equal(x.key.Public()) || key.Algorithm != x.algorithm || key.ID == "" {
			t.Errorf("%s, id %q", key.Algorithm, key.ID)
		}
	}
	if _, err := tokenkey.Read(public); !errors.Is(err, tokenkey.ErrNone) {
		t.Errorf("a public key alone: %v", err)
	}
	if _, err := tokenkey.Read(); !errors.Is(err, tokenkey.ErrNone) {
		t.Errorf("no files: %v", err)
	}
}

func write(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func must(der []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return der
}
