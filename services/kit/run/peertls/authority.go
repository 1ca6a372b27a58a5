package peertls

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	peerLifetime      = 365 * 24 * time.Hour
	clockSkew         = 5 * time.Minute
)

// Authority is an in-memory CA that signs peer certificates, for tests and for deployments
// without another CA.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority returns an authority with a new key.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "portico-peers"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:  x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		NotBefore: time.Now().Add(-clockSkew), NotAfter: time.Now().Add(authorityLifetime),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert: cert, key: key}, err
}

// Issue signs a certificate for a process and writes CA, certificate and key to dir, in
// files named after the first name. The names are those of the services in the process;
// host names and addresses may follow, for servers that are not part of the suite.
func (a *Authority) Issue(dir string, names ...string) (Files, error) {
	if len(names) == 0 {
		return Files{}, errors.New("a peer certificate needs a name")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Files{}, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-clockSkew), NotAfter: time.Now().Add(peerLifetime),
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Files{}, fmt.Errorf("signing a certificate for %v: %w", names, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Files{}, err
	}
	files := Files{
		CA:   filepath.Join(dir, names[0]+"-ca.crt"),
		Cert: filepath.Join(dir, names[0]+".crt"),
		Key:  filepath.Join(dir, names[0]+".key"),
	}
	return files, errors.Join(
		writePEM(files.CA, "CERTIFICATE", a.cert.Raw),
		writePEM(files.Cert, "CERTIFICATE", cert),
		writePEM(files.Key, "PRIVATE KEY", keyDER),
	)
}

// Flags returns the files as arguments of a process.
func (f Files) Flags() []string {
	return []string{"--peer-ca-file=" + f.CA, "--peer-cert-file=" + f.Cert, "--peer-key-file=" + f.Key}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
