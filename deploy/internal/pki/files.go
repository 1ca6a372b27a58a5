package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

func (p *PKI) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

// write writes a file atomically; only its owner may read it. If root writes it, it gets the
// owner of the folder.
func (p *PKI) write(name string, content []byte) error {
	path := p.path(name)
	dir := filepath.Dir(path)
	if err := p.makeDir(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close(), setOwner(f.Name(), dir)); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// makeDir creates the folder of a process.
func (p *PKI) makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	return setOwner(dir, filepath.Dir(dir))
}

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
