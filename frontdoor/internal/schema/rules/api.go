package rules

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
)

// signerOfV1: the signer that takes anything is not for version v1.
func signerOfV1(c *Check, m, old map[string]any, at *field.Path) {
	legacy := c.Vocabulary.Signers.LegacyUnknown
	if signer := textOf(objectOf(m, "spec"), "signerName"); old == nil && signer == legacy {
		c.Invalid(at.Field("spec").Field("signerName"), signer, "the legacy signerName is not allowed via this API version")
	}
}

// certificateStatus holds the rules on status of section
// "CertificateSigningRequest".
func certificateStatus(c *Check, m, old map[string]any, at *field.Path) {
	status, before := objectOf(m, "status"), objectOf(old, "status")
	at = at.Field("status")
	seen := map[string]bool{}
	for i, condition := range objectsOf(status, "conditions") {
		where, kind := at.Field("conditions").Item(i), textOf(condition, "type")
		switch {
		case kind == "":
			c.Required(where.Field("type"), "")
		case seen[kind]:
			c.Duplicate(where.Field("type"), kind)
		}
		seen[kind] = true
		switch state := textOf(condition, "status"); state {
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
	certificate := textOf(status, "certificate")
	if certificate != "" && certificate != textOf(before, "certificate") {
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

// reviewVersions: a webhook must understand a review that is sent here.
func reviewVersions(c *Check, m, _ map[string]any, at *field.Path) {
	versions := listOf(m, "admissionReviewVersions")
	if len(versions) > 0 && !slices.Contains(versions, any("v1")) && !slices.Contains(versions, any("v1beta1")) {
		c.Invalid(at.Field("admissionReviewVersions"), versions, "must include at least one of v1, v1beta1")
	}
}
