package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

func (p *PKI) path(name string) string { return p.tree.Path(name) }

// write writes a file atomically; only its owner may read it.
func (p *PKI) write(name string, content []byte) error { return p.tree.Write(name, content) }

func (p *PKI) writeCertificates(name string, certs ...*x509.Certificate) error {
	text, err := cert.EncodeCertificates(certs...)
	if err != nil {
		return err
	}
	return p.write(name, text)
}

func (p *PKI) writeKey(name string, key crypto.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return p.write(name, pem.EncodeToMemory(&pem.Block{Type: keyutil.PrivateKeyBlockType, Bytes: der}))
}

// readCertificate returns the first certificate of a file.
func (p *PKI) readCertificate(name string) (*x509.Certificate, error) {
	certs, err := cert.CertsFromFile(p.path(name))
	if err != nil {
		return nil, err
	}
	return certs[0], nil
}

func (p *PKI) readKey(name string) (crypto.Signer, error) {
	key, err := keyutil.PrivateKeyFromFile(p.path(name))
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a key of type %T cannot sign", name, key)
	}
	return signer, nil
}
