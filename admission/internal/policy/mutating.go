package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
)

// Mutating is a stored MutatingAdmissionPolicy.
type Mutating struct{ *mutating }

type mutating struct {
	name     string
	spec     admissionregistrationv1.MutatingAdmissionPolicySpec
	criteria criteria
	// namespace is set if an expression uses namespaceObject, merges if a mutation is an
	// apply configuration.
	namespace, merges bool

	programs compiled[mutations]
}

// mutations are the compiled expressions of a policy.
type mutations struct {
	conditions cel.Expressions
	list       []mutation
	err        error
}

// mutation is one change of the object.
type mutation struct {
	expression cel.Expressions
	merge      bool // an apply configuration; otherwise a JSON patch
}

// ParseMutating parses a stored MutatingAdmissionPolicy.
func ParseMutating(o services.Object) (Mutating, error) {
	p := &mutating{name: o.Key.Name, namespace: strings.Contains(string(o.JSON), "namespaceObject")}
	var stored admissionregistrationv1.MutatingAdmissionPolicy
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		return Mutating{p}, err
	}
	p.spec = stored.Spec
	p.criteria = newCriteria(stored.Spec.MatchConstraints)
	if stored.Spec.MatchConstraints == nil {
		p.criteria.err = errors.New("policy contained no match constraints, a required field")
	}
	p.merges = slices.ContainsFunc(p.spec.Mutations, func(m admissionregistrationv1.Mutation) bool { return m.ApplyConfiguration != nil })
	return Mutating{p}, nil
}

// ignores reports whether the failure policy is Ignore.
func (p *mutating) ignores() bool {
	return p.spec.FailurePolicy != nil && *p.spec.FailurePolicy == admissionregistrationv1.Ignore
}

// reinvokes reports whether the policy is applied again when the object has changed since.
func (p *mutating) reinvokes() bool {
	return p.spec.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
}

// needsConverter reports whether requests like that of a review may need the converter,
// whatever their objects.
func (p *mutating) needsConverter(r *review.Review) bool {
	as, covered := covers(p.criteria.rules, p.criteria.equivalent, r)
	return covered && (p.merges || r.Converts(as))
}

// compile compiles the expressions of a policy.
func (p *mutating) compile(e *cel.Engine) *mutations {
	c, err := compose(e, p.spec.Variables, p.spec.ParamKind)
	if err != nil {
		return &mutations{err: err}
	}
	m := &mutations{conditions: conditionsOf(c, p.spec.MatchConditions)}
	for _, x := range p.spec.Mutations {
		switch {
		case x.ApplyConfiguration != nil:
			m.list = append(m.list, mutation{c.Expressions(cel.ApplyConfiguration, []string{x.ApplyConfiguration.Expression}), true})
		case x.JSONPatch != nil:
			m.list = append(m.list, mutation{c.Expressions(cel.JSONPatch, []string{x.JSONPatch.Expression}), false})
		}
	}
	return m
}
