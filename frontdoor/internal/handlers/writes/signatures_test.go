package writes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

// TestSignaturesOfRequests: a request for a certificate is signed with its own key, whichever signer it is for.
func TestSignaturesOfRequests(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-1] ^= 1
	t.Setenv("GODEBUG", "rsa1024min=0")
	weak, err := rsa.GenerateKey(rand.Reader, 512)
	if err != nil {
		t.Fatal(err)
	}
	short, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, weak)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GODEBUG", "")
	for name, x := range map[string]struct {
		der   []byte
		valid bool
	}{"good": {good, true}, "flipped": {flipped, false}, "weak": {short, false}} {
		for _, signer := range []string{"example.com/signer", "kubernetes.io/kube-apiserver-client"} {
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: x.der})
			body := fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"generateName":"r-"},
				"spec":{"signerName":%q,"usages":["client auth"],"request":%q}}`, signer, base64.StdEncoding.EncodeToString(text))
			_, err := c.do("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", body)
			if (err == nil) != x.valid || err != nil && !services.IsReason(err, services.ReasonInvalid) {
				t.Errorf("%s for %s: %v", name, signer, err)
			}
		}
	}
}
