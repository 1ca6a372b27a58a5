package csrsigner

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"time"

	"github.com/smallstep/certificates/cas/apiv1"
	"github.com/smallstep/certificates/cas/softcas"
)

// backdate makes new certificates valid for clients whose clocks are behind.
const backdate = 5 * time.Minute

// authority issues certificates from templates. It sets only their validity period.
type authority struct {
	service  apiv1.CertificateAuthorityService
	lifetime time.Duration
	notAfter time.Time // of the authority itself
	now      func() time.Time
}

// newAuthority reads an authority's certificate chain and key.
func newAuthority(certFile, keyFile string, lifetime time.Duration, now func() time.Time) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	var chain []*x509.Certificate
	for _, der := range pair.Certificate {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, certificate)
	}
	if !chain[0].IsCA {
		return nil, errors.New("the certificate is not of an authority")
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	service, err := softcas.New(context.Background(), apiv1.Options{CertificateChain: chain, Signer: signer})
	return &authority{service: service, lifetime: lifetime, notAfter: chain[0].NotAfter, now: now}, err
}

// issue returns the PEM of a new certificate. The certificate is checked against the
// template, because a remote authority may issue another one.
func (a *authority) issue(template *x509.Certificate, request *x509.CertificateRequest) ([]byte, error) {
	lifetime := min(a.lifetime, a.notAfter.Sub(a.now()))
	if lifetime <= 0 {
		return nil, errors.New("the authority's own certificate has expired")
	}
	answer, err := a.service.CreateCertificate(&apiv1.CreateCertificateRequest{
		Template: template, CSR: request, Lifetime: lifetime, Backdate: backdate})
	if err != nil {
		return nil, err
	}
	got := answer.Certificate
	same, ok := got.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !same.Equal(template.PublicKey) || got.Subject.String() != template.Subject.String() || got.IsCA {
		return nil, errors.New("the authority issued another certificate than was asked for")
	}
	var text bytes.Buffer
	err = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: got.Raw})
	return text.Bytes(), err
}
