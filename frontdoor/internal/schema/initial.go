package schema

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/frontdoor/internal/tree"
)

// CheckDefault notes what is wrong with the default of a custom type's schema: it
// may have no field that would be dropped, and must be valid where it stands.
func (e *Engine) CheckDefault(s *spec.Schema, at *field.Path, errs *field.Errors) {
	n := e.structural(s)
	value := tree.Copy(s.Default)
	p := preparation{vocabulary: e.vocabulary}
	p.value(n, value, at)
	for _, name := range p.unknownFields() {
		errs.Invalid(at, s.Default, "must not have unknown fields: "+name)
	}
	if why := p.wrongType(); why != "" {
		errs.Invalid(at, s.Default, why)
	}
	c := &check{Check: rules.Check{Vocabulary: e.vocabulary}}
	c.value(n, value, nil, at)
	errs.Join(&c.Errors)
}
