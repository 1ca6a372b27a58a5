// Package access holds the functions of Revocations and IssuedCertificates. Their rules are those
// of package services/revocation. It serves section "Authentication" of the specification.
package access

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/revocation"
	"github.com/portico-platform/portico/services/tree"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{Checks: map[string]rules.CheckFunc{
	"issuedCertificate": issuedCertificate,
	"revocationSpec":    revocationSpec,
}}

// revocationSpec checks a spec. One of another type than the schema says is left to the schema.
func revocationSpec(c *rules.Check, m, _ map[string]any, at *field.Path) {
	raw, err := tree.Encode(map[string]any{"spec": m})
	if err != nil {
		return
	}
	if spec, err := revocation.Decode(raw); err == nil {
		report(c, spec.Check(), at)
	}
}

// issuedCertificate checks an object. One of another type than the schema says, or without what
// it requires, is left to the schema.
func issuedCertificate(c *rules.Check, m, _ map[string]any, at *field.Path) {
	spec := rules.Object(m, "spec")
	for _, required := range []string{"serial", "signerName", "notBefore", "notAfter"} {
		if rules.Text(spec, required) == "" {
			return
		}
	}
	raw, err := tree.Encode(map[string]any{"spec": spec})
	if err != nil {
		return
	}
	if certificate, err := revocation.DecodeCertificate(raw); err == nil {
		report(c, certificate.Check(rules.Text(rules.Object(m, "metadata"), "name")), at.Field("spec"))
	}
}

func report(c *rules.Check, problems []revocation.Problem, at *field.Path) {
	for _, p := range problems {
		where := at
		if p.Field != "" {
			where = at.Field(p.Field)
		}
		if p.Reason == services.CauseRequired {
			c.Required(where, p.Message)
		} else {
			c.Invalid(where, p.Value, p.Message)
		}
	}
}
