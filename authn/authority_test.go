package authn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

// authority is a certificate authority for tests.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return &authority{certificate: certificate, key: key, file: file}
}

// client returns the DER chain of a new client certificate.
func (a *authority) client(t *testing.T, name string, organizations ...string) [][]byte {
	t.Helper()
	return a.issue(t, pkix.Name{CommonName: name, Organization: organizations})
}

// issue returns the DER chain of a new client certificate for a subject.
func (a *authority) issue(t *testing.T, subject pkix.Name) [][]byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, newKey(t).Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{der}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestCredentialIDsOfCertificates: since release 1.36 the extra values name the certificate.
func TestCredentialIDsOfCertificates(t *testing.T) {
	ca := newAuthority(t)
	chain := ca.client(t, "jane", "dev")
	digest := sha256.Sum256(chain[0])
	for release, want := range map[string]map[string][]string{"1.21": nil, "1.36": {"authentication.platform.io/credential-id": {"X509SHA256=" + hex.EncodeToString(digest[:])}}} {
		a := started(t, "--client-ca-file="+ca.file, "--emulated-version="+release)
		got, err := a.Authenticate(t.Context(), services.Credentials{Certificates: chain})
		if err != nil || got.User.Name != "jane" || !maps.EqualFunc(got.User.Extra, want, slices.Equal) {
			t.Errorf("%s: %+v, %v, want %v", release, got.User, err, want)
		}
	}
}

// TestUIDsOfCertificates: at release 1.36 the subject of a client certificate may have the UID, unless the feature is off.
func TestUIDsOfCertificates(t *testing.T) {
	ca := newAuthority(t)
	uid := func(values ...any) (names []pkix.AttributeTypeAndValue) {
		for _, value := range values {
			names = append(names, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: value})
		}
		return names
	}
	for args, has := range map[string]bool{"--emulated-version=1.21": false, "--emulated-version=1.36": true, "--emulated-version=1.36 --feature-gates=AllowParsingUserUIDFromCertAuth=false": false} {
		a := started(t, append(strings.Fields(args), "--client-ca-file="+ca.file)...)
		for _, c := range []struct {
			names   []pkix.AttributeTypeAndValue
			want    string
			refused bool
		}{{nil, "", false}, {uid("u1"), "u1", false}, {uid("u1", "u2"), "", true}, {uid(""), "", true}} {
			got, err := a.Authenticate(t.Context(), services.Credentials{Certificates: ca.issue(t, pkix.Name{CommonName: "jane", ExtraNames: c.names})})
			if !has {
				c.want, c.refused = "", false
			}
			if c.refused != services.IsReason(err, services.ReasonUnauthorized) || !c.refused && (got.User.Name != "jane" || got.User.UID != c.want) {
				t.Errorf("%s, %v: %+v, %v", args, c.names, got.User, err)
			}
		}
		// A subject with an attribute that is no text cannot be parsed, whether or not it is the UID.
		for _, names := range [][]pkix.AttributeTypeAndValue{uid(7), uid("u1", 7)} {
			got, err := a.Authenticate(t.Context(), services.Credentials{Certificates: ca.issue(t, pkix.Name{CommonName: "jane", ExtraNames: names})})
			if !services.IsReason(err, services.ReasonUnauthorized) {
				t.Errorf("%s, %v: %+v, %v", args, names, got.User, err)
			}
		}
	}
}
