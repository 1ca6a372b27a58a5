// Package extension holds the functions of AdmissionServices. Their defaults and rules are
// those of package services/admissionservice, which admission applies to its file. It
// serves "Admission plugins" of the specification.
package extension

import (
	"cmp"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{"admissionService": admissionService},
	Derive: map[string]rules.DeriveFunc{"completeAdmissionService": completeAdmissionService},
	Cells:  map[string]cell.Func{"showAdmissionServiceAvailable": showAdmissionServiceAvailable},
}

// completeAdmissionService sets the defaults of a spec.
func completeAdmissionService(m map[string]any, _ vocabulary.Vocabulary) {
	admissionservice.Complete(m)
}

// admissionService checks a spec. One of another type than the schema says is left to the
// schema.
func admissionService(c *rules.Check, m, _ map[string]any, at *field.Path) {
	spec, err := admissionservice.Decode(m)
	if err != nil {
		return
	}
	for _, problem := range spec.Check(compile) {
		report(c, problem, at)
	}
}

// expressions compiles expressions; it evaluates none.
var expressions = sync.OnceValue(func() *cel.Engine { return cel.New(cel.Config{}) })

func compile(expression string) error { return expressions().CheckMatch(expression) }

func report(c *rules.Check, p admissionservice.Problem, at *field.Path) {
	for _, part := range p.Path {
		switch part := part.(type) {
		case string:
			at = at.Field(part)
		case int:
			at = at.Item(part)
		}
	}
	switch p.Reason {
	case services.CauseRequired:
		c.Required(at, p.Message)
	case services.CauseNotSupported:
		c.NotSupported(at, p.Value, p.Allowed...)
	case services.CauseDuplicate:
		c.Duplicate(at, p.Value)
	default:
		c.Invalid(at, p.Value, p.Message)
	}
}

func showAdmissionServiceAvailable(o *cell.Object) any {
	return cmp.Or(cell.Condition(o.Status.Get("conditions"), admissionservice.Available).Get("status").String(), "Unknown")
}
