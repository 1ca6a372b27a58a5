package method

import (
	"context"
	"crypto/sha1" //nolint:gosec // of key IDs
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	oids "k8s.io/apimachinery/pkg/apis/asn1"

	"github.com/portico-platform/portico/services"
)

// certificateFor bounds how long the result for a certificate may be cached.
const certificateFor = time.Minute

// Certificate authenticates client certificates: the common name is the user name, the
// organizations are the groups.
type Certificate struct {
	// UIDs makes the attribute of subjects that Kubernetes has for it the UID of the user, as since
	// release 1.33.
	UIDs bool
	// CredentialID is the extra value with the SHA-256 digest of the certificate; empty for none.
	CredentialID string

	roots *x509.CertPool
	now   func() time.Time
}

// NewCertificate returns a method that trusts the certificate authorities in PEM files.
func NewCertificate(paths []string, now func() time.Time) (*Certificate, error) {
	roots, err := ReadRoots(paths)
	if err != nil {
		return nil, err
	}
	return &Certificate{roots: roots, now: now}, nil
}

// Name implements Method.
func (m *Certificate) Name() string { return services.ByCertificate }

// Authenticate implements Method. A certificate without a common name is ignored.
func (m *Certificate) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	if len(c.Certificates) == 0 {
		return services.Authentication{}, ErrNone
	}
	leaf, err := verifyClient(c.Certificates, m.roots, m.now())
	if err != nil {
		return services.Authentication{}, err
	}
	if leaf.Subject.CommonName == "" {
		return services.Authentication{}, ErrNone
	}
	uid, err := m.uid(leaf)
	if err != nil {
		return services.Authentication{}, err
	}
	user := services.UserInfo{Name: leaf.Subject.CommonName, UID: uid, Groups: leaf.Subject.Organization}
	if m.CredentialID != "" {
		digest := sha256.Sum256(leaf.Raw)
		user.Extra = map[string][]string{m.CredentialID: {"X509SHA256=" + hex.EncodeToString(digest[:])}}
	}
	return services.Authentication{
		User:     user,
		CacheFor: min(certificateFor, leaf.NotAfter.Sub(m.now())), Credential: traceOf(leaf),
	}, nil
}

// uid returns the UID in the subject of a certificate, empty if there is none. One that is not a text,
// is empty or is there twice is an error.
func (m *Certificate) uid(leaf *x509.Certificate) (string, error) {
	if !m.UIDs {
		return "", nil
	}
	uid, found := "", false
	for _, attribute := range leaf.Subject.Names {
		if !attribute.Type.Equal(uidAttribute) {
			continue
		}
		text, ok := attribute.Value.(string)
		if found || !ok || text == "" {
			return "", errors.New("client certificate: the UID of the subject must be a single non-empty string")
		}
		uid, found = text, true
	}
	return uid, nil
}

var uidAttribute = oids.X509UID()

// traceOf returns what a verified certificate depends on.
func traceOf(leaf *x509.Certificate) services.Credential {
	return services.Credential{Expires: leaf.NotAfter, Issued: leaf.NotBefore, Serial: leaf.SerialNumber.Text(16), KeyID: keyID(leaf)}
}

// keyID returns the subject key ID of a certificate in lower-case hexadecimal: that of the
// certificate, or the SHA-1 digest of its public key, which authorities use by default (RFC
// 5280 section 4.2.1.2).
func keyID(leaf *x509.Certificate) string {
	if len(leaf.SubjectKeyId) > 0 {
		return hex.EncodeToString(leaf.SubjectKeyId)
	}
	var key struct {
		Algorithm asn1.RawValue
		Bits      asn1.BitString
	}
	if _, err := asn1.Unmarshal(leaf.RawSubjectPublicKeyInfo, &key); err != nil {
		return ""
	}
	digest := sha1.Sum(key.Bits.Bytes) //nolint:gosec // an identifier and no protection
	return hex.EncodeToString(digest[:])
}

// verifyClient verifies a DER chain, leaf first, for client authentication and returns its
// leaf.
func verifyClient(chain [][]byte, roots *x509.CertPool, now time.Time) (*x509.Certificate, error) {
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	intermediates := x509.NewCertPool()
	for _, der := range chain[1:] {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("client certificate chain: %w", err)
		}
		intermediates.AddCert(certificate)
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return leaf, err
}

// ReadRoots reads PEM bundles. A file without a certificate, or with an invalid one, is an
// error: a typo must not silently drop some of the CAs.
func ReadRoots(paths []string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	for _, path := range paths {
		rest, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found := 0
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if block.Type != "CERTIFICATE" {
				continue
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			pool.AddCert(certificate)
			found++
		}
		if found == 0 {
			return nil, fmt.Errorf("%s: %w", path, errors.New("no PEM certificate in it"))
		}
	}
	return pool, nil
}

var _ Method = (*Certificate)(nil)
