package home

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The files of keys and certificates in the folder.
const (
	caCert, caKey           = "pki/ca.crt", "pki/ca.key"
	servingCert, servingKey = "pki/serving.crt", "pki/serving.key"
	signingCert, signingKey = "pki/signing-ca.crt", "pki/signing-ca.key"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 365 * 24 * time.Hour
	// renewBefore is how long before its expiry a serving certificate is replaced, and
	// renewEvery the period of the check.
	renewBefore = 60 * 24 * time.Hour
	renewEvery  = 24 * time.Hour
	// backdate tolerates small differences between clocks.
	backdate = 5 * time.Minute
)

// makeCertificates makes what is missing. The serving certificate is replaced,
// with the same key, when it expires soon or does not cover all hosts. The key stays
// because service account tokens are signed with it when no other key
// is given.
func (h *home) makeCertificates(hosts []string) error {
	ca, err := h.authority("portico-ca", caCert, caKey)
	if err != nil {
		return err
	}
	if _, err := h.authority("portico-signing-ca", signingCert, signingKey); err != nil {
		return err
	}
	key, err := h.key(servingKey)
	if err != nil {
		return err
	}
	issue := func() ([]byte, error) { return ca.serving(key, hosts) }
	content, err := h.readOrMake(servingCert, issue)
	if err != nil {
		return err
	}
	if validFor(content, hosts, time.Now().Add(renewBefore)) {
		return nil
	}
	if content, err = issue(); err != nil {
		return err
	}
	return h.write(servingCert, content)
}

// renewCertificates renews the certificates while the process runs; the front door
// reloads them when they change.
func (h *home) renewCertificates(ctx context.Context, log *slog.Logger, hosts []string) error {
	ticks := time.NewTicker(renewEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := h.makeCertificates(hosts); err != nil {
				log.Error("cannot renew the serving certificate", "error", err)
			}
		}
	}
}

// authority is a certificate authority with its key.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authority returns the certificate authority in the files, and creates it if it is missing.
func (h *home) authority(name, certFile, keyFile string) (*authority, error) {
	key, err := h.key(keyFile)
	if err != nil {
		return nil, err
	}
	content, err := h.readOrMake(certFile, func() ([]byte, error) {
		template, err := template(name, authorityLife)
		if err != nil {
			return nil, err
		}
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
		return certificate(template, template, key.Public(), key)
	})
	if err != nil {
		return nil, err
	}
	certs, err := cert.ParseCertsPEM(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certFile, err)
	}
	return &authority{certs[0], key}, nil
}

// serving returns a TLS server certificate for the hosts.
func (a *authority) serving(key crypto.Signer, hosts []string) ([]byte, error) {
	template, err := template("portico", servingLife)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return certificate(template, a.cert, key.Public(), a.key)
}

// validFor reports whether a certificate is valid for all hosts until a time.
func validFor(content []byte, hosts []string, until time.Time) bool {
	certs, err := cert.ParseCertsPEM(content)
	if err != nil || certs[0].NotAfter.Before(until) {
		return false
	}
	for _, host := range hosts {
		if certs[0].VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// key returns the private key in a file, and creates it if it is missing.
func (h *home) key(name string) (crypto.Signer, error) {
	content, err := h.readOrMake(name, func() ([]byte, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: keyutil.PrivateKeyBlockType, Bytes: der}), nil
	})
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a key of type %T cannot sign", name, key)
	}
	return signer, nil
}

func template(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
	}, err
}

func certificate(template, parent *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), nil
}
