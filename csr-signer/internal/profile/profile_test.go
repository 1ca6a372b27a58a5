package profile

import (
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestTemplate(t *testing.T) {
	v := vocabulary.K8s()
	client, server := []string{digitalSignature, keyEncipherment, clientAuth}, []string{digitalSignature, keyEncipherment, serverAuth}
	node := pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}}
	jane := pkix.Name{CommonName: "jane"}
	for _, c := range []struct {
		name, signer string
		request      x509.CertificateRequest
		usages       []string
		want         bool
	}{
		{"a client", v.Signers.Client, x509.CertificateRequest{Subject: jane, EmailAddresses: []string{"j@example.com"}}, client, true},
		{"without client auth", v.Signers.Client, x509.CertificateRequest{Subject: jane}, []string{digitalSignature}, false},
		{"with server auth", v.Signers.Client, x509.CertificateRequest{Subject: jane}, append(client, serverAuth), false},
		{"a node", v.Signers.NodeClient, x509.CertificateRequest{Subject: node}, client, true},
		{"no node", v.Signers.NodeClient, x509.CertificateRequest{Subject: jane}, client, false},
		{"a node without a name", v.Signers.NodeClient, x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "system:node:", Organization: node.Organization}}, client, true}, // only the prefix is required
		{"a node of more groups", v.Signers.NodeClient, x509.CertificateRequest{
			Subject: pkix.Name{CommonName: node.CommonName, Organization: []string{"system:nodes", "x"}}}, client, false},
		{"a usage less", v.Signers.NodeClient, x509.CertificateRequest{Subject: node}, []string{clientAuth}, false},
		{"a node with names", v.Signers.NodeClient, x509.CertificateRequest{Subject: node, DNSNames: []string{"n"}}, client, false},
		{"a serving node", v.Signers.NodeServing, x509.CertificateRequest{Subject: node, IPAddresses: []net.IP{{10, 0, 0, 1}}}, server, true},
		{"without names", v.Signers.NodeServing, x509.CertificateRequest{Subject: node}, server, false},
		{"with a URI", v.Signers.NodeServing, x509.CertificateRequest{Subject: node, DNSNames: []string{"n"}, URIs: []*url.URL{{}}}, server, false},
		{"anything", v.Signers.LegacyUnknown, x509.CertificateRequest{Subject: jane}, []string{"code signing", "crl sign"}, true},
		{"an unknown usage", v.Signers.LegacyUnknown, x509.CertificateRequest{Subject: jane}, []string{"magic"}, false},
	} {
		template, err := BuiltIn(v, release.V121)[c.signer].Template(&c.request, c.usages)
		if c.want != (err == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && (template.IsCA || template.Subject.String() != c.request.Subject.String()) {
			t.Errorf("%s: %+v", c.name, template)
		}
	}
}

// TestUsagesOfNodes: nodes with keys of elliptic curves ask for no key encipherment, which
// counts from release 1.27 on.
func TestUsagesOfNodes(t *testing.T) {
	v := vocabulary.K8s()
	request := x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}}}
	serving := request
	serving.DNSNames = []string{"n"}
	for r, want := range map[release.Release]bool{release.V121: false, release.V136: true} {
		profiles := BuiltIn(v, r)
		for signer, c := range map[string]struct {
			request x509.CertificateRequest
			usage   string
		}{v.Signers.NodeClient: {request, clientAuth}, v.Signers.NodeServing: {serving, serverAuth}} {
			if _, err := profiles[signer].Template(&c.request, []string{digitalSignature, c.usage}); want != (err == nil) {
				t.Errorf("%s at %s without key encipherment: %v", signer, r, err)
			}
			if _, err := profiles[signer].Template(&c.request, []string{digitalSignature, keyEncipherment, c.usage}); err != nil {
				t.Errorf("%s at %s with key encipherment: %v", signer, r, err)
			}
			if _, err := profiles[signer].Template(&c.request, []string{keyEncipherment, c.usage}); err == nil {
				t.Errorf("%s at %s without digital signature is signed", signer, r)
			}
		}
	}
}

// TestLargeKeys: the signature of a request with an RSA key that is too large is not verified.
func TestLargeKeys(t *testing.T) {
	for bits, want := range map[int]string{8192: "verification error", 32768: "the RSA key has 32768 bits, more than 16384"} {
		if _, err := Parse(requestWithKey(t, bits)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bits: %v, want %s", bits, err, want)
		}
	}
}

// requestWithKey returns a request with an RSA key that nobody has, and any signature.
func requestWithKey(t *testing.T, bits int) []byte {
	t.Helper()
	marshal := func(value any) asn1.RawValue {
		der, err := asn1.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return asn1.RawValue{FullBytes: der}
	}
	modulus := new(big.Int).SetBit(big.NewInt(1), bits-1, 1)
	key, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: modulus, E: 65537})
	if err != nil {
		t.Fatal(err)
	}
	sha256WithRSA := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
	der := marshal(struct {
		Request   asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{marshal(struct {
		Version                  int
		Subject, Key, Attributes asn1.RawValue
	}{0, marshal(pkix.Name{CommonName: "a"}.ToRDNSequence()), asn1.RawValue{FullBytes: key}, asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true}}),
		pkix.AlgorithmIdentifier{Algorithm: sha256WithRSA, Parameters: asn1.NullRawValue}, asn1.BitString{Bytes: make([]byte, bits/8), BitLength: bits}})
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der.FullBytes})
}
