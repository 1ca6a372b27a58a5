package resource

import (
	"fmt"

	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

const (
	// maxSource is the limit on an expression in bytes, maxCost the one on its estimated cost.
	maxSource = 10 << 10
	maxCost   = 1000000
	// maxExpressions bounds the different expressions of one object that are compiled when it
	// is written: each takes about 1 ms.
	maxExpressions = 1000
)

// selectors checks the expressions that select devices, each of an object once.
type selectors struct {
	*rules.Check
	features cel.Features
	problems map[string]string // by expression
}

func newSelectors(c *rules.Check) *selectors {
	on := func(feature string, byDefault bool) bool {
		if c.Feature == nil {
			return byDefault
		}
		return c.Feature(feature)
	}
	return &selectors{c, cel.Features{EnableConsumableCapacity: on("DRAConsumableCapacity", true), EnableListTypeAttributes: on("DRAListTypeAttributes", false)},
		map[string]string{}}
}

// check checks the selectors of a request or class.
func (s *selectors) check(m map[string]any, at *field.Path) {
	for i, selector := range rules.Objects(m, "selectors") {
		source := rules.Text(rules.Object(selector, "cel"), "expression")
		if selector["cel"] == nil || len(source) > maxSource {
			continue // reported elsewhere
		}
		problem, known := s.problems[source]
		if !known && len(s.problems) >= maxExpressions {
			s.Invalid(at.Field("selectors"), len(s.problems), fmt.Sprintf("must not have more than %d different expressions", maxExpressions))
			return
		}
		if !known && !s.Full() {
			problem = s.compile(source)
			s.problems[source] = problem
		}
		switch at := at.Field("selectors").Item(i).Field("cel").Field("expression"); problem {
		case "":
		case tooComplex:
			s.Forbidden(at, problem)
		default:
			s.Invalid(at, source, problem)
		}
	}
}

const tooComplex = "too complex, exceeds cost limit"

// compile returns what is wrong with an expression; "" if nothing is.
func (s *selectors) compile(source string) string {
	kind := environment.NewExpressions
	switch result := cel.GetCompiler(s.features).CompileCELExpression(source, cel.Options{EnvType: &kind}); {
	case result.Error != nil:
		return result.Error.Detail
	case result.MaxCost > maxCost:
		return tooComplex
	}
	return ""
}

// classSelectors checks the expressions of a class, unless they are as they are stored.
func classSelectors(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil || !rules.Same(m["selectors"], old["selectors"]) {
		newSelectors(c).check(m, at)
	}
}

// classResource checks the extended resource by which pods request the devices of a class.
func classResource(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if name, ok := m["extendedResourceName"].(string); ok && !resources.Extended(c, name) {
		c.Invalid(at.Field("extendedResourceName"), name, "must be a valid extended resource name")
	}
}
