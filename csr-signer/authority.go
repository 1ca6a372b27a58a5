package csrsigner

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	"github.com/smallstep/certificates/cas/apiv1"
	"github.com/smallstep/certificates/cas/softcas"
	"golang.org/x/crypto/ocsp"
)

// backdate makes new certificates valid for clients whose clocks are behind.
const backdate = 5 * time.Minute

// shortest is the shortest lifetime that requesters get, as in Kubernetes.
const shortest = 10 * time.Minute

// authority issues certificates from templates. It sets only their validity period, and where
// their state is published. It also signs revocation lists and OCSP responses.
type authority struct {
	service     *softcas.SoftCAS
	certificate *x509.Certificate
	key         crypto.Signer
	lifetime    time.Duration
	now         func() time.Time
	// lists and responders are the URLs in certificates, if there are any.
	lists, responders []string
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
	return &authority{service: service, certificate: chain[0], key: signer, lifetime: lifetime, now: now}, err
}

// issue returns a new certificate, whose lifetime is at most the wanted one unless that is 0.
// The certificate is checked against the template, because a remote authority may issue
// another one.
func (a *authority) issue(template *x509.Certificate, request *x509.CertificateRequest, wanted time.Duration) (*x509.Certificate, error) {
	now := a.now()
	lifetime := min(a.lifetime, a.certificate.NotAfter.Sub(now))
	if wanted > 0 {
		lifetime = min(lifetime, max(wanted, shortest))
	}
	if lifetime <= 0 {
		return nil, errors.New("the authority's own certificate has expired")
	}
	// Otherwise the service would take the clock of this machine, which may be another one.
	template.NotBefore, template.NotAfter = now.Add(-backdate), now.Add(lifetime)
	template.CRLDistributionPoints, template.OCSPServer = a.lists, a.responders
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
	return got, nil
}

// Certificate implements responder.Authority.
func (a *authority) Certificate() *x509.Certificate { return a.certificate }

// SignList implements responder.Authority.
func (a *authority) SignList(list *x509.RevocationList) ([]byte, error) {
	answer, err := a.service.CreateCRL(&apiv1.CreateCRLRequest{RevocationList: list})
	if err != nil {
		return nil, err
	}
	return answer.CRL, nil
}

// SignStatus implements responder.Authority.
func (a *authority) SignStatus(status ocsp.Response) ([]byte, error) {
	return ocsp.CreateResponse(a.certificate, a.certificate, status, a.key)
}
