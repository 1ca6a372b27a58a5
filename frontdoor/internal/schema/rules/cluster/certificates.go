package cluster

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// signerOfV1: the signer that takes anything is not for version v1.
func signerOfV1(c *rules.Check, m, old map[string]any, at *field.Path) {
	legacy := c.Vocabulary.Signers.LegacyUnknown
	if signer := rules.Text(rules.Object(m, "spec"), "signerName"); old == nil && signer == legacy {
		c.Invalid(at.Field("spec").Field("signerName"), signer, "the legacy signerName is not allowed via this API version")
	}
}

// certificateStatus holds the rules on status of section
// "CertificateSigningRequest".
func certificateStatus(c *rules.Check, m, old map[string]any, at *field.Path) {
	status, before := rules.Object(m, "status"), rules.Object(old, "status")
	at = at.Field("status")
	seen := map[string]bool{}
	for i, condition := range rules.Objects(status, "conditions") {
		where, kind := at.Field("conditions").Item(i), rules.Text(condition, "type")
		switch {
		case kind == "":
			c.Required(where.Field("type"), "")
		case seen[kind]:
			c.Duplicate(where.Field("type"), kind)
		}
		seen[kind] = true
		switch state := rules.Text(condition, "status"); state {
		case "":
			c.Required(where.Field("status"), "")
		case "True", "False", "Unknown":
		default:
			c.NotSupported(where.Field("status"), state, "True", "False", "Unknown")
		}
	}
	if seen["Approved"] && seen["Denied"] {
		c.Invalid(at.Field("conditions"), "Denied", "Approved and Denied conditions are mutually exclusive")
	}
	certificate := rules.Text(status, "certificate")
	if certificate != "" && certificate != rules.Text(before, "certificate") {
		if problem := certificatesOnly(certificate); problem != "" {
			c.Invalid(at.Field("certificate"), "<certificate data>", problem)
		}
	}
}

// certificatesOnly checks PEM in base64: blocks of certificates without headers,
// with any text around them.
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
		if _, err := x509.ParseCertificates(block.Bytes); err != nil {
			return err.Error()
		}
		count++
	}
	if count == 0 {
		return "must contain at least one CERTIFICATE PEM block"
	}
	return ""
}

// oldSigner gives a request of the older version, which names no signer, the one
// that accepts anything.
func oldSigner(m map[string]any, v vocabulary.Vocabulary) {
	if rules.Empty(m["signerName"]) {
		m["signerName"] = v.Signers.LegacyUnknown
	}
}
