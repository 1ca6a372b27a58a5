package checks

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func clientCertificates() {
	s := Section("Authentication: client certificate")

	s.Check("CERT-01", "username = subject common name; groups = organization fields (several allowed)", func(t *T) {
		who := t.WhoAmI(As(t.Fix.CA.Client("jane", "dev", "ops")))
		t.Eq("username", who.Str("username"), "jane")
		t.SameSet("groups", who.Strs("groups"), "dev", "ops", "system:authenticated")
	})
	s.Check("CERT-02", "a certificate of another CA than --client-ca-file is not accepted", func(t *T) {
		t.Unauthorized(t.Fix.OtherCA.Client("jane", "system:masters"))
	})
	s.Check("CERT-03", "an expired certificate is not valid", func(t *T) {
		cert := t.Fix.CA.Issue(pkix.Name{CommonName: "jane"}, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		})
		t.Unauthorized(WithCert("jane", cert))
	})
	s.Check("CERT-04", "several methods at once: certificates and tokens on one server", func(t *T) {
		t.Eq("by certificate", t.WhoAmI(As(t.Fix.CA.Client("jane"))).Str("username"), "jane")
		t.Eq("by token", t.WhoAmI(As(Token("alice-token"))).Str("username"), "alice")
		t.Eq("by neither", t.WhoAmI(As(Anonymous)).Str("username"), "system:anonymous")
	})
	s.Check("CERT-05", "a handshake names the authorities of --client-ca-file and --requestheader-client-ca-file", func(t *T) {
		got := t.NamedAuthorities()
		for _, ca := range []*Authority{t.Fix.CA, t.Fix.ProxyCA} {
			t.True(slices.ContainsFunc(got, func(name []byte) bool { return bytes.Equal(name, ca.Cert.RawSubject) }), "the name of each authority, got %q", got)
		}
	})
}
