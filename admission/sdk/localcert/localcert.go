// Package localcert creates a certificate authority and certificates that it signs, for
// admission services on the author's machine and for tests. It decides names, lifetimes and
// permissions of files. It is no authority for production: its key is a plain file or only
// in memory, and nothing is ever revoked.
package localcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	lifetime  = 365 * 24 * time.Hour
	clockSkew = 5 * time.Minute
	// renewBefore is how long before its end Ensure replaces a certificate.
	renewBefore = 30 * 24 * time.Hour
)

// Authority is a certificate authority in memory.
type Authority struct {
	// CA is its certificate, as PEM.
	CA   []byte
	cert *x509.Certificate
	key  crypto.Signer
}

// New returns an authority with a new key.
func New() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "local admission services"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-clockSkew), NotAfter: time.Now().Add(lifetime),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{CA: encode("CERTIFICATE", der), cert: cert, key: key}, err
}

// Issue returns a certificate and its key, as PEM, for a server or a client. The names are
// host names and IP addresses; the first is also the common name.
func (a *Authority) Issue(names ...string) (cert, key []byte, err error) {
	if len(names) == 0 {
		return nil, nil, errors.New("a certificate needs a name")
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-clockSkew), NotAfter: a.cert.NotAfter,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8), err
}

// Files are the paths of a certificate, its key and its authority.
type Files struct{ CA, Cert, Key string }

// Ensure returns the certificate in a folder, and creates it with a new authority if there
// is none for these names or if it ends soon.
func Ensure(dir string, names ...string) (Files, error) {
	files := Files{filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	if files.valid(names) {
		return files, nil
	}
	authority, err := New()
	if err != nil {
		return files, err
	}
	cert, key, err := authority.Issue(names...)
	if err != nil {
		return files, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return files, err
	}
	for path, content := range map[string][]byte{files.CA: authority.CA, files.Cert: cert, files.Key: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return files, err
		}
	}
	return files, nil
}

// valid reports whether the files have a certificate for these names.
func (f Files) valid(names []string) bool {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return false
	}
	ca, err := os.ReadFile(f.CA)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		return false
	}
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: time.Now().Add(renewBefore)}); err != nil {
			return false
		}
	}
	return true
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
