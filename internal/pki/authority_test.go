package pki

import (
	"crypto/x509"
	"strings"
	"testing"

	"github.com/smallstep/certificates/cas/apiv1"
)

// changing is an authority that signs another certificate than the requested one.
type changing struct {
	apiv1.CertificateAuthorityService
	change func(*x509.Certificate)
}

func (c changing) CreateCertificate(r *apiv1.CreateCertificateRequest) (*apiv1.CreateCertificateResponse, error) {
	template := *r.Template
	c.change(&template)
	request := *r
	request.Template = &template
	return c.CertificateAuthorityService.CreateCertificate(&request)
}

// TestSignedCertificatesAreChecked uses authorities that change the requested certificate, as
// remote ones can: none of their certificates is used.
func TestSignedCertificatesAreChecked(t *testing.T) {
	p := newPKI(t)
	before := contents(t, p)["admin/user.crt"]
	other, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*x509.Certificate){
		"another key":                         func(c *x509.Certificate) { c.PublicKey = other.Public() },
		"is of an":                            func(c *x509.Certificate) { c.IsCA = true },
		"the certificate is for \"CN=admin\"": func(c *x509.Certificate) { c.Subject.Organization = nil },
		"for the hosts":                       func(c *x509.Certificate) { c.DNSNames = []string{"store"} },
		"incompatible key":                    func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} },
	} {
		fresh, err := Open(p.dir)
		if err != nil {
			t.Fatal(err)
		}
		a, err := fresh.authority(users)
		if err != nil {
			t.Fatal(err)
		}
		a.service = changing{a.service, change}
		if _, _, err := fresh.Renew(100 * 24 * 3600e9); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
	if contents(t, p)["admin/user.crt"] != before {
		t.Error("the administrator has another certificate")
	}
}
