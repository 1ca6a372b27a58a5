// Package profile defines what the built-in signers sign: the subject, usages and subject
// alternative names that a request may have, and the certificate template that results. It
// issues nothing. It serves "Built-in signers" of the specification.
package profile

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Profile is the policy of one signer.
type Profile struct {
	// node requires the subject of a node.
	node bool
	// required usages must be present; others must be in allowed, where nil allows all
	// known usages.
	required, allowed []string
	// names is the rule for subject alternative names.
	names namesRule
}

type namesRule uint8

const (
	anyNames    namesRule = iota
	noNames               // none
	serverNames           // DNS names and addresses only, at least one
)

const (
	digitalSignature = "digital signature"
	keyEncipherment  = "key encipherment"
	clientAuth       = "client auth"
	serverAuth       = "server auth"

	nodesOrganization = "system:nodes"
	nodeNameStart     = "system:node:"
)

// agreedKeys is the first release in which nodes may leave out key encipherment: keys of
// elliptic curves encipher nothing.
var agreedKeys, _ = release.Of("1.27")

// BuiltIn returns the profiles of a release by the names of their signers.
func BuiltIn(v vocabulary.Vocabulary, r release.Release) map[string]Profile {
	client := []string{digitalSignature, keyEncipherment, clientAuth}
	server := []string{digitalSignature, keyEncipherment, serverAuth}
	ofClient, ofServer := client, server // of nodes
	if !r.Before(agreedKeys) {
		ofClient, ofServer = []string{digitalSignature, clientAuth}, []string{digitalSignature, serverAuth}
	}
	return map[string]Profile{
		v.Signers.Client:        {required: []string{clientAuth}, allowed: client},
		v.Signers.NodeClient:    {node: true, required: ofClient, allowed: client, names: noNames},
		v.Signers.NodeServing:   {node: true, required: ofServer, allowed: server, names: serverNames},
		v.Signers.LegacyUnknown: {},
	}
}

// maxRSABits is the limit on RSA keys. The time to verify a signature grows with the square of the
// size, and a request has space for keys of millions of bits.
const maxRSABits = 16384

// Parse parses the PEM of a request and verifies its signature, which proves that the
// requester holds the key. It refuses RSA keys of more than maxRSABits.
func Parse(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("the request is not a PEM block of type CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := request.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, fmt.Errorf("the RSA key has %d bits, more than %d", key.N.BitLen(), maxRSABits)
	}
	return request, request.CheckSignature()
}

// Template returns the certificate for a request, without its validity period. The errors
// name the conditions of the signer that are not met.
func (p Profile) Template(r *x509.CertificateRequest, usages []string) (*x509.Certificate, error) {
	if err := errors.Join(p.checkSubject(r), p.checkUsages(usages), p.checkNames(r)); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: r.Subject, PublicKey: r.PublicKey, PublicKeyAlgorithm: r.PublicKeyAlgorithm,
		DNSNames: r.DNSNames, IPAddresses: r.IPAddresses, EmailAddresses: r.EmailAddresses, URIs: r.URIs,
		BasicConstraintsValid: true, // with IsCA false
	}
	for _, usage := range usages {
		if bit, ok := keyUsages[usage]; ok {
			template.KeyUsage |= bit
		} else if extended, ok := extendedUsages[usage]; ok {
			template.ExtKeyUsage = append(template.ExtKeyUsage, extended)
		} else {
			return nil, fmt.Errorf("usage %q is not known", usage)
		}
	}
	return template, nil
}

func (p Profile) checkSubject(r *x509.CertificateRequest) error {
	if !p.node {
		return nil
	}
	if len(r.Subject.Organization) != 1 || r.Subject.Organization[0] != nodesOrganization {
		return fmt.Errorf("the organization is %q, not exactly %s", r.Subject.Organization, nodesOrganization)
	}
	if !strings.HasPrefix(r.Subject.CommonName, nodeNameStart) {
		return fmt.Errorf("the common name %q does not start with %s", r.Subject.CommonName, nodeNameStart)
	}
	return nil
}

func (p Profile) checkUsages(usages []string) error {
	for _, required := range p.required {
		if !slices.Contains(usages, required) {
			return fmt.Errorf("usage %q is missing", required)
		}
	}
	if p.allowed == nil {
		return nil
	}
	for _, usage := range usages {
		if !slices.Contains(p.allowed, usage) {
			return fmt.Errorf("usage %q is not allowed", usage)
		}
	}
	return nil
}

func (p Profile) checkNames(r *x509.CertificateRequest) error {
	server, other := len(r.DNSNames)+len(r.IPAddresses), len(r.EmailAddresses)+len(r.URIs)
	switch {
	case p.names == noNames && server+other > 0:
		return errors.New("alternative names are not allowed")
	case p.names == serverNames && other > 0:
		return errors.New("email and URI alternative names are not allowed")
	case p.names == serverNames && server == 0:
		return errors.New("a DNS or IP alternative name is needed")
	}
	return nil
}
