// Package access holds the functions of Revocations. Their rules are those of package
// services/revocation. It serves section "Authentication" of the specification.
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
var Functions = kinds.Functions{Checks: map[string]rules.CheckFunc{"revocationSpec": revocationSpec}}

// revocationSpec checks a spec. One of another type than the schema says is left to the schema.
func revocationSpec(c *rules.Check, m, _ map[string]any, at *field.Path) {
	raw, err := tree.Encode(map[string]any{"spec": m})
	if err != nil {
		return
	}
	spec, err := revocation.Decode(raw)
	if err != nil {
		return
	}
	for _, p := range spec.Check() {
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
