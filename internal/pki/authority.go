package pki

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/smallstep/certificates/cas"
	"github.com/smallstep/certificates/cas/apiv1"
)

const (
	authoritiesDir = "authorities"
	// backdate makes certificates valid immediately on machines with a slow clock.
	backdate = 5 * time.Minute
)

func authorityFile(name, suffix string) string { return authoritiesDir + "/" + name + suffix }

// authority signs certificates.
type authority struct {
	service apiv1.CertificateAuthorityService
	root    *x509.Certificate
}

// makeAuthorities creates the authorities with local keys and fetches the root certificates
// of the remote ones. No two may be the same: a certificate of one would be valid for the
// other.
func (p *PKI) makeAuthorities() error {
	owner := map[string]string{}
	for _, name := range authorityNames() {
		if err := p.makeOrFetchAuthority(name); err != nil {
			return err
		}
		root, err := p.readCertificate(authorityFile(name, ".crt"))
		if err != nil {
			return err
		}
		if other := owner[string(root.RawSubjectPublicKeyInfo)]; other != "" {
			return fmt.Errorf("--cas: the authorities %q and %q have the same root: a certificate of one would be valid for the other", other, name)
		}
		owner[string(root.RawSubjectPublicKeyInfo)] = name
	}
	return nil
}

func (p *PKI) makeOrFetchAuthority(name string) error {
	var err error
	if options, remote := p.site.CAS[name]; remote {
		err = p.fetchAuthority(name, options)
	} else {
		err = p.makeAuthority(name)
	}
	if err != nil {
		return fmt.Errorf("authority %s: %w", name, err)
	}
	return nil
}

func (p *PKI) makeAuthority(name string) error {
	creator, err := cas.NewCreator(context.Background(), apiv1.Options{Type: apiv1.SoftCAS})
	if err != nil {
		return err
	}
	created, err := creator.CreateCertificateAuthority(&apiv1.CreateCertificateAuthorityRequest{
		Name: name, Type: apiv1.RootCA, Lifetime: p.site.AuthorityValidity.Duration, Backdate: backdate,
		Template: &x509.Certificate{
			Subject: pkix.Name{CommonName: "portico-" + name}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		},
	})
	if err != nil {
		return err
	}
	// The certificate is last: an authority without it is created again.
	if err := p.writeKey(authorityFile(name, ".key"), created.PrivateKey); err != nil {
		return err
	}
	return p.writeCertificates(authorityFile(name, ".crt"), created.Certificate)
}

// fetchAuthority fetches and stores the root certificate of a remote authority.
func (p *PKI) fetchAuthority(name string, options apiv1.Options) error {
	options.IsCAGetter = true
	service, err := cas.New(context.Background(), options)
	if err != nil {
		return err
	}
	getter, ok := service.(apiv1.CertificateAuthorityGetter)
	if !ok {
		return fmt.Errorf("%s does not provide its root certificate", options.Type)
	}
	answer, err := getter.GetCertificateAuthority(&apiv1.GetCertificateAuthorityRequest{Name: options.CertificateAuthority})
	if err != nil {
		return err
	}
	return p.writeCertificates(authorityFile(name, ".crt"), answer.RootCertificate)
}

// authority returns an authority by name, ready to sign.
func (p *PKI) authority(name string) (*authority, error) {
	if a := p.authorities[name]; a != nil {
		return a, nil
	}
	root, err := p.readCertificate(authorityFile(name, ".crt"))
	if err != nil {
		return nil, err
	}
	options, remote := p.site.CAS[name]
	if !remote {
		key, err := p.readKey(authorityFile(name, ".key"))
		if err != nil {
			return nil, err
		}
		options = apiv1.Options{Type: apiv1.SoftCAS, CertificateChain: []*x509.Certificate{root}, Signer: key}
	}
	service, err := cas.New(context.Background(), options)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	if p.authorities == nil {
		p.authorities = map[string]*authority{}
	}
	a := &authority{service, root}
	p.authorities[name] = a
	return a, nil
}

// issue requests a certificate from its authority and writes it with its intermediates.
func (p *PKI) issue(file string, r request, key crypto.Signer) (*x509.Certificate, error) {
	a, err := p.authority(r.authority)
	if err != nil {
		return nil, err
	}
	lifetime := min(p.site.Validity.Duration, a.root.NotAfter.Sub(p.now()))
	if lifetime <= 0 {
		return nil, fmt.Errorf("the authority %q has expired", r.authority)
	}
	template := r.template(key.Public())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: template.Subject, DNSNames: template.DNSNames, IPAddresses: template.IPAddresses}, key)
	if err != nil {
		return nil, err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, err
	}
	answer, err := a.service.CreateCertificate(&apiv1.CreateCertificateRequest{
		Template: template, CSR: csr, Lifetime: lifetime, Backdate: backdate})
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", r.authority, err)
	}
	if err := a.check(answer, template); err != nil {
		return nil, fmt.Errorf("authority %s: %w", r.authority, err)
	}
	chain := slices.DeleteFunc(slices.Clone(answer.CertificateChain), func(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) })
	return answer.Certificate, p.writeCertificates(file, append([]*x509.Certificate{answer.Certificate}, chain...)...)
}

// template returns the requested certificate.
func (r request) template(key crypto.PublicKey) *x509.Certificate {
	t := &x509.Certificate{
		Subject:  pkix.Name{CommonName: r.name, Organization: r.groups},
		KeyUsage: x509.KeyUsageDigitalSignature, PublicKey: key, BasicConstraintsValid: true,
	}
	if r.server {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if r.client {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, host := range r.hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return t
}

// check compares a certificate with the requested one, because a remote authority may change
// it according to its own configuration.
func (a *authority) check(answer *apiv1.CreateCertificateResponse, want *x509.Certificate) error {
	got := answer.Certificate
	names := func(c *x509.Certificate) string {
		all := slices.Clone(c.DNSNames)
		for _, ip := range c.IPAddresses {
			all = append(all, ip.String())
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	key, ok := got.PublicKey.(*ecdsa.PublicKey)
	switch {
	case !ok || !key.Equal(want.PublicKey):
		return errors.New("the certificate is for another key")
	case got.IsCA:
		return errors.New("the certificate is of an authority")
	case got.Subject.String() != want.Subject.String():
		return fmt.Errorf("the certificate is for %q, not for %q", got.Subject, want.Subject)
	case names(got) != names(want):
		return fmt.Errorf("the certificate is for the hosts %q, not for %q", names(got), names(want))
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(a.root)
	for _, c := range answer.CertificateChain {
		intermediates.AddCert(c)
	}
	for _, usage := range want.ExtKeyUsage {
		if _, err := got.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			return err
		}
	}
	return nil
}

func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
