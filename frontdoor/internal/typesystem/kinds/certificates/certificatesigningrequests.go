package certificates

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// signerOfV1 checks that a v1 request does not name the legacy signer, which is only valid
// in v1beta1.
func signerOfV1(c *rules.Check, m, old map[string]any, at *field.Path) {
	legacy := c.Vocabulary.Signers.LegacyUnknown
	if signer := rules.Text(rules.Object(m, "spec"), "signerName"); old == nil && signer == legacy {
		c.Invalid(at.Field("spec").Field("signerName"), signer, "the legacy signerName is not allowed via this API version")
	}
}

// maxRSABits bounds the work of verifying a signature.
const maxRSABits = 16 << 10

// requestSignature checks that a new request is signed with the key that it is for: signers of others rely on the
// API for that. Keys with which nothing can be verified, as RSA keys of 512 bits, are refused by this too.
func requestSignature(c *rules.Check, m, old map[string]any, at *field.Path) {
	const omitted = "<request>"
	if old != nil {
		return // a stored request stays as it is, and can still be denied
	}
	at = at.Field("spec").Field("request")
	text, _ := base64.StdEncoding.DecodeString(rules.Text(rules.Object(m, "spec"), "request"))
	block, _ := pem.Decode(text)
	if block == nil {
		return // the format of the field says why
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return
	}
	if key, ok := request.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		c.Invalid(at, omitted, fmt.Sprintf("the RSA key has more than %d bits", maxRSABits))
		return
	}
	if err := request.CheckSignature(); err != nil {
		c.Invalid(at, omitted, err.Error())
	}
}

// certificateStatus has the rules on status of section "CertificateSigningRequest".
func certificateStatus(c *rules.Check, m, old map[string]any, at *field.Path) {
	oldCertificateStatus(c, m, old, at)
	seen := map[string]bool{}
	at = at.Field("status")
	for i, condition := range rules.ConditionsOf(m, "") {
		where, kind := at.Field("conditions").Item(i).Field("type"), rules.Text(condition, "type")
		switch {
		case kind == "":
			c.Required(where, "")
		case seen[kind]:
			c.Duplicate(where, kind)
		}
		seen[kind] = true
	}
	certificate, before := rules.Text(rules.Object(m, "status"), "certificate"), rules.Text(rules.Object(old, "status"), "certificate")
	if certificate != "" && certificate != before {
		if problem := certificatesOnly(certificate); problem != "" {
			c.Invalid(at.Field("certificate"), "<certificate data>", problem)
		}
	}
	if before != "" && certificate != before {
		c.Forbidden(at.Field("certificate"), "updates may not modify existing certificate content")
	}
}

// oldCertificateStatus has the rules for v1beta1, which v1 shares: decisions are final, and
// only the subresource approval adds them.
func oldCertificateStatus(c *rules.Check, m, old map[string]any, at *field.Path) {
	at = at.Field("status").Field("conditions")
	for i, condition := range rules.ConditionsOf(m, "") {
		where, allowed := at.Item(i).Field("status"), []string{"False", "True", "Unknown"}
		if slices.Contains(decisions, rules.Text(condition, "type")) {
			allowed = allowed[1:2]
		}
		switch state := rules.Text(condition, "status"); {
		case state == "":
			c.Required(where, "")
		case !slices.Contains(allowed, state):
			c.NotSupported(where, state, allowed...)
		}
	}
	both := func(m map[string]any) bool {
		return rules.ConditionsOf(m, "Approved") != nil && rules.ConditionsOf(m, "Denied") != nil
	}
	if both(m) && !both(old) {
		c.Invalid(at, "Denied", "Approved and Denied conditions are mutually exclusive")
	}
	if old == nil {
		return
	}
	for _, kind := range decisions {
		now, before := rules.ConditionsOf(m, kind), rules.ConditionsOf(old, kind)
		mayDecide := c.Subresource == "approval" || kind == "Failed"
		switch {
		case len(now) < len(before):
			c.Forbidden(at, fmt.Sprintf("updates may not remove a condition of type %q", kind))
		case len(now) > len(before) && !mayDecide:
			c.Forbidden(at, fmt.Sprintf("updates may not add a condition of type %q", kind))
		}
	}
}

// decisions are the condition types that record the outcome of a request.
var decisions = []string{"Approved", "Denied", "Failed"}

// certificatesOnly checks that base64-encoded PEM has only certificate blocks without
// headers; text around them is allowed. It returns the error message, or "".
func certificatesOnly(encoded string) string {
	rest, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "must be base64"
	}
	count := 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case block.Type != "CERTIFICATE":
			return fmt.Sprintf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		case len(block.Headers) > 0:
			return "no PEM block headers are permitted"
		}
		switch found, err := x509.ParseCertificates(block.Bytes); {
		case err != nil:
			return err.Error()
		case len(found) == 0:
			return "found CERTIFICATE PEM block containing 0 certificates"
		}
		count++
	}
	if count == 0 {
		return "must contain at least one CERTIFICATE PEM block"
	}
	return ""
}

// signerOfOldRequest defaults the signer of a v1beta1 request: the signer for nodes whose
// conditions the request meets, or else the legacy one.
func signerOfOldRequest(m map[string]any, v vocabulary.Vocabulary) {
	if rules.Empty(m["signerName"]) {
		m["signerName"] = signerOf(m, v.Signers)
	}
}

func signerOf(spec map[string]any, signers vocabulary.Signers) string {
	text, _ := base64.StdEncoding.DecodeString(rules.Text(spec, "request"))
	block, _ := pem.Decode(text)
	if block == nil {
		return signers.LegacyUnknown
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || !slices.Equal(r.Subject.Organization, []string{"system:nodes"}) || !strings.HasPrefix(r.Subject.CommonName, "system:node:") {
		return signers.LegacyUnknown
	}
	server, other := len(r.DNSNames)+len(r.IPAddresses), len(r.EmailAddresses)+len(r.URIs)
	switch usages := slices.Sorted(slices.Values(rules.Texts(spec, "usages"))); {
	case slices.Equal(usages, []string{"client auth", "digital signature", "key encipherment"}) && server+other == 0:
		return signers.NodeClient
	case slices.Equal(usages, []string{"digital signature", "key encipherment", "server auth"}) && server > 0 && other == 0:
		return signers.NodeServing
	}
	return signers.LegacyUnknown
}
