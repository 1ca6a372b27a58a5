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
	proxyCACert, proxyCAKey = "pki/front-proxy-ca.crt", "pki/front-proxy-ca.key"
	proxyCert, proxyKey     = "pki/front-proxy-client.crt", "pki/front-proxy-client.key"

	admissionCACert, admissionCAKey = "pki/admission-ca.crt", "pki/admission-ca.key"
	admissionCert, admissionKey     = "pki/admission-client.crt", "pki/admission-client.key"
)

// admissionName is the name of admission in its client certificate, as between processes.
const admissionName = "admission"

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// renewBefore is how long before its expiry a certificate is replaced, and renewEvery
	// the period of the check. Authorities are not replaced.
	renewBefore = 60 * 24 * time.Hour
	renewEvery  = 24 * time.Hour
	// backdate tolerates small differences between clocks.
	backdate = 5 * time.Minute
)

// leaf describes a certificate that is renewed.
type leaf struct {
	cert, key string // files
	authority *authority
	name      string
	hosts     []string
	usage     x509.ExtKeyUsage
}

// makeCertificates makes what is missing. Certificates are replaced, with the same key, when
// they expire soon; the serving certificate also when it does not cover all hosts. Its key
// stays because service account tokens are signed with it when no other key is given.
func (h *home) makeCertificates(hosts []string) error {
	servers, err := h.authority("portico-ca", caCert, caKey)
	if err != nil {
		return err
	}
	if _, err := h.authority("portico-signing-ca", signingCert, signingKey); err != nil {
		return err
	}
	// A client with a certificate of this authority may name users: it signs only one.
	proxies, err := h.authority("portico-front-proxy-ca", proxyCACert, proxyCAKey)
	if err != nil {
		return err
	}
	// Admission services and webhooks trust this authority: it signs only admission.
	admissions, err := h.authority("portico-admission-ca", admissionCACert, admissionCAKey)
	if err != nil {
		return err
	}
	for _, l := range []leaf{
		{servingCert, servingKey, servers, "portico", hosts, x509.ExtKeyUsageServerAuth},
		{proxyCert, proxyKey, proxies, proxyName, nil, x509.ExtKeyUsageClientAuth},
		{admissionCert, admissionKey, admissions, admissionName, []string{admissionName}, x509.ExtKeyUsageClientAuth},
	} {
		if err := h.keep(l); err != nil {
			return err
		}
	}
	return nil
}

// keep makes a certificate and its key if they are missing, and replaces the certificate if
// it expires soon or does not cover all hosts.
func (h *home) keep(l leaf) error {
	key, err := h.key(l.key)
	if err != nil {
		return err
	}
	issue := func() ([]byte, error) { return l.issue(key) }
	content, err := h.readOrMake(l.cert, issue)
	if err != nil {
		return err
	}
	if validFor(content, l.hosts, time.Now().Add(renewBefore)) {
		return nil
	}
	if content, err = issue(); err != nil {
		return err
	}
	return h.write(l.cert, content)
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
				log.Error("cannot renew the certificates", "error", err)
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
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
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

// issue returns the certificate for a key.
func (l leaf) issue(key crypto.Signer) ([]byte, error) {
	template, err := template(l.name, leafLife)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{l.usage}
	for _, host := range l.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return certificate(template, l.authority.cert, key.Public(), l.authority.key)
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
