package admissionregistration

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/kit/cel"
)

// maxExpressions bounds the expressions of one object that are compiled when it is written:
// each takes about 1 ms.
const maxExpressions = 1000

// expressions checks the expressions of one object.
type expressions struct {
	*rules.Check
	engine *cel.Engine
	// params is set if a policy has a paramKind.
	params  bool
	checker *cel.Checker // of a policy
	stored  map[string]bool
	count   int
}

func newExpressions(c *rules.Check) *expressions {
	return &expressions{Check: c, engine: cel.New(cel.Config{Release: c.Release}), stored: map[string]bool{}}
}

// keep records the expressions of the stored object: they may use everything.
func (x *expressions) keep(items []map[string]any, names ...string) {
	for _, item := range items {
		for _, name := range names {
			if source := rules.Text(item, name); source != "" {
				x.stored[source] = true
			}
		}
	}
}

// given reports whether there is an expression, and adds an error if there is none.
func (x *expressions) given(source string, at *field.Path, missing string) bool {
	if strings.TrimSpace(source) == "" {
		x.Required(at, missing)
		return false
	}
	if x.count++; x.count > maxExpressions {
		if x.count == maxExpressions+1 {
			x.Invalid(at, source, fmt.Sprintf("must not be one of more than %d expressions", maxExpressions))
		}
		return false
	}
	return !x.Full()
}

// refuse adds the error of an expression.
func (x *expressions) refuse(source string, at *field.Path, err error) {
	if err != nil {
		x.Invalid(at, source, err.Error())
	}
}

// use checks an expression of a policy.
func (x *expressions) use(use cel.Use, source string, at *field.Path, missing string) {
	if x.given(source, at, missing) {
		x.refuse(source, at, x.checker.Expression(use, source, x.stored[source]))
	}
}

// conditions checks match conditions, which are not checked again as long as they stay the
// same.
func (x *expressions) conditions(m, old map[string]any, at *field.Path) {
	if old != nil && rules.Same(m["matchConditions"], old["matchConditions"]) && rules.Same(m["paramKind"], old["paramKind"]) {
		return
	}
	x.keep(rules.Objects(old, "matchConditions"), "expression")
	list, names := at.Field("matchConditions"), map[string]bool{}
	conditions := rules.Objects(m, "matchConditions")
	if len(conditions) > 64 {
		x.TooMany(list, len(conditions), 64)
	}
	for i, condition := range conditions {
		at := list.Item(i)
		if source := strings.TrimSpace(rules.Text(condition, "expression")); x.given(source, at.Field("expression"), "") {
			x.refuse(source, at.Field("expression"), x.engine.CheckCondition(source, x.params, x.stored[source]))
		}
		name := rules.Text(condition, "name")
		if name == "" {
			x.Required(at.Field("name"), "")
			continue
		}
		x.Must(validation.IsQualifiedName, name, at.Field("name"))
		if names[name] {
			x.Duplicate(at.Field("name"), name)
		}
		names[name] = true
	}
}

// variables checks the variables of a policy, which later expressions may use.
func (x *expressions) variables(m map[string]any, at *field.Path) {
	for i, variable := range rules.Objects(m, "variables") {
		at := at.Field("variables").Item(i)
		name, source := rules.Text(variable, "name"), rules.Text(variable, "expression")
		switch {
		case strings.TrimSpace(name) == "":
			x.Required(at.Field("name"), "name is not specified")
		case !isIdentifier(name):
			x.Invalid(at.Field("name"), name, "must be a valid CEL identifier")
		}
		if x.given(source, at.Field("expression"), "expression is not specified") {
			x.refuse(source, at.Field("expression"), x.checker.Variable(cel.Variable{Name: name, Expression: source}, x.stored[source]))
		}
	}
}

// webhookConditions checks the match conditions of all webhooks of a configuration.
func webhookConditions(c *rules.Check, m, old map[string]any, at *field.Path) {
	x := newExpressions(c)
	before := rules.Objects(old, "webhooks")
	for _, hook := range before {
		x.keep(rules.Objects(hook, "matchConditions"), "expression")
	}
	hooks := rules.Objects(m, "webhooks")
	same := len(hooks) == len(before)
	for i := 0; same && i < len(hooks); i++ {
		same = rules.Same(hooks[i]["matchConditions"], before[i]["matchConditions"])
	}
	if same && old != nil {
		return
	}
	for i, hook := range hooks {
		x.conditions(hook, nil, at.Field("webhooks").Item(i))
	}
}
