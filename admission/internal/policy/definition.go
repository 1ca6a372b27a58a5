// Package policy applies admission policies: objects whose expressions decide about
// requests. It follows the policies and their bindings, decides which match a request,
// finds their parameters and evaluates their expressions by package cel. A policy whose
// expressions or parameters fail is subject to its failure policy. It writes nothing. It
// serves "Admission plugins" of the specification.
package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
)

// Validating is a stored ValidatingAdmissionPolicy.
type Validating struct{ *validating }

type validating struct {
	name     string
	spec     admissionregistrationv1.ValidatingAdmissionPolicySpec
	criteria criteria
	// namespace is set if an expression uses namespaceObject.
	namespace bool

	programs compiled[programs]
}

// ParseValidating parses a stored ValidatingAdmissionPolicy.
func ParseValidating(o services.Object) (Validating, error) {
	p := &validating{name: o.Key.Name, namespace: strings.Contains(string(o.JSON), "namespaceObject")}
	var stored admissionregistrationv1.ValidatingAdmissionPolicy
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		return Validating{p}, err
	}
	p.spec = stored.Spec
	p.criteria = newCriteria(stored.Spec.MatchConstraints)
	if stored.Spec.MatchConstraints == nil {
		p.criteria.err = errors.New("policy contained no match constraints, a required field")
	}
	return Validating{p}, nil
}

// ignores reports whether the failure policy is Ignore.
func (p *validating) ignores() bool {
	return p.spec.FailurePolicy != nil && *p.spec.FailurePolicy == admissionregistrationv1.Ignore
}

// Binding is a stored binding of a policy of either kind.
type Binding struct{ *binding }

type binding struct {
	name     string
	spec     admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec // of the other kind: without actions
	criteria *criteria                                                    // nil matches what the policy matches
}

// ParseBinding parses a stored binding of either kind.
func ParseBinding(o services.Object) (Binding, error) {
	var stored admissionregistrationv1.ValidatingAdmissionPolicyBinding
	b := &binding{name: o.Key.Name}
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		return Binding{b}, err
	}
	b.spec = stored.Spec
	if resources := stored.Spec.MatchResources; resources != nil {
		c := newCriteria(resources)
		b.criteria = &c
	}
	return Binding{b}, nil
}

// criteria are the parsed MatchResources of a policy or binding.
type criteria struct {
	selectors  match.Selectors
	rules      []admissionregistrationv1.NamedRuleWithOperations
	excluded   []admissionregistrationv1.NamedRuleWithOperations
	equivalent bool
	err        error // they cannot be used
}

func newCriteria(m *admissionregistrationv1.MatchResources) criteria {
	if m == nil {
		return criteria{}
	}
	c := criteria{rules: m.ResourceRules, excluded: m.ExcludeResourceRules, equivalent: m.MatchPolicy != nil && *m.MatchPolicy == admissionregistrationv1.Equivalent}
	c.selectors, c.err = match.ParseSelectors(m.NamespaceSelector, m.ObjectSelector)
	return c
}

// match reports whether a request matches, and as which type. Errors of the selectors count
// only for requests that the rules match.
func (c *criteria) match(ctx context.Context, r *review.Review, labels match.Labels) (as services.ServedType, ok bool, err error) {
	if c.err != nil {
		return r.Own(), false, c.err
	}
	if _, excluded := covers(c.excluded, c.equivalent, r); excluded {
		return r.Own(), false, nil
	}
	as = r.Own()
	if len(c.rules) > 0 {
		if as, ok = covers(c.rules, c.equivalent, r); !ok {
			return as, false, nil
		}
	}
	ok, err = c.selectors.Select(ctx, r, labels)
	return as, ok, err
}

// covers returns the type of the request if a rule names it, or one that serves the same
// objects and is named.
func covers(rules []admissionregistrationv1.NamedRuleWithOperations, equivalent bool, r *review.Review) (services.ServedType, bool) {
	own := r.Own()
	for i := range rules {
		if match.Covers(&rules[i].RuleWithOperations, own, r) && named(&rules[i], r) {
			return own, true
		}
	}
	for i := 0; equivalent && i < len(rules); i++ {
		for _, served := range r.Served {
			if match.Covers(&rules[i].RuleWithOperations, served, r) && named(&rules[i], r) {
				return served, true
			}
		}
	}
	return own, false
}

func named(rule *admissionregistrationv1.NamedRuleWithOperations, r *review.Review) bool {
	return len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name)
}

// programs are the compiled expressions of a policy.
type programs struct {
	conditions, validations, messages, annotations cel.Expressions
	err                                            error
}

// compile compiles the expressions of a policy.
func (p *validating) compile(e *cel.Engine) *programs {
	c, err := compose(e, p.spec.Variables, p.spec.ParamKind)
	if err != nil {
		return &programs{err: err}
	}
	var validations, messages, annotations []string
	for _, v := range p.spec.Validations {
		validations, messages = append(validations, v.Expression), append(messages, v.MessageExpression)
	}
	for _, a := range p.spec.AuditAnnotations {
		annotations = append(annotations, a.ValueExpression)
	}
	return &programs{conditions: conditionsOf(c, p.spec.MatchConditions), validations: c.Expressions(cel.Condition, validations),
		messages: c.Expressions(cel.Message, messages), annotations: c.Expressions(cel.Annotation, annotations)}
}

// compose compiles the variables of a policy.
func compose(e *cel.Engine, list []admissionregistrationv1.Variable, kind *admissionregistrationv1.ParamKind) (*cel.Composition, error) {
	var variables []cel.Variable
	for _, v := range list {
		variables = append(variables, cel.Variable(v))
	}
	c, err := e.Compose(variables, kind != nil)
	if err != nil {
		return nil, fmt.Errorf("compiling the variables: %w", err)
	}
	return c, nil
}

// conditionsOf compiles the match conditions of a policy.
func conditionsOf(c *cel.Composition, list []admissionregistrationv1.MatchCondition) cel.Expressions {
	var sources []string
	for _, m := range list {
		sources = append(sources, m.Expression)
	}
	return c.Expressions(cel.Condition, sources)
}
