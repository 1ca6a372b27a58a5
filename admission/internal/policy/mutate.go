package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/portico-platform/portico/admission/internal/admissionreview"
	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// MutatorConfig is what mutating policies are applied with.
type MutatorConfig struct {
	Policies    review.Collection[Mutating]
	Bindings    review.Collection[Binding]
	Custom      review.Collection[Custom]
	Store       services.Reader
	Labels      match.Labels
	Expressions *cel.Engine
	Vocabulary  vocabulary.Vocabulary
}

// Mutator applies MutatingAdmissionPolicies.
type Mutator struct {
	MutatorConfig
	compiled *cache[mutations]
}

// NewMutator returns the plugin.
func NewMutator(c MutatorConfig) *Mutator {
	return &Mutator{c, newCache[mutations](c.Expressions, maxCompiled)}
}

// Concerns reports whether a policy may change the objects of requests like that of a review.
func (p *Mutator) Concerns(r *review.Review) bool {
	return r.Operation != services.OperationDelete && !exempt(p.Vocabulary, r) && len(p.Policies.List("")) > 0
}

// NeedsConverter reports whether the request lacks the converter that a policy may need.
func (p *Mutator) NeedsConverter(r *review.Review) bool {
	return r.Converter == nil && p.Concerns(r) && slices.ContainsFunc(p.Policies.List(""), func(m Mutating) bool { return m.needsConverter(r) })
}

// mutated is a request while mutating policies are applied to it.
type mutated struct {
	*review.Review
	plugin  *Mutator
	objects objects
	denied  []refusal
}

// invocation is a policy with one binding and one object of its paramKind.
type invocation struct {
	*mutating
	binding *binding
	as      services.ServedType
	params  map[string]any
}

// key identifies the invocation between rounds.
func (i *invocation) key() string {
	metadata := tree.Child(i.params, "metadata")
	return "policy/" + i.name + "/" + i.binding.name + "/" + tree.Text(metadata, "namespace") + "/" + tree.Text(metadata, "name")
}

// Mutate applies the policies that match the request, in the order of their names. In the
// second round it applies those with reinvocationPolicy IfNeeded if the object has changed
// since. A policy that fails refuses the request (403) unless its failure policy is Ignore.
func (p *Mutator) Mutate(ctx context.Context, r *review.Review) error {
	if !p.Concerns(r) {
		return nil
	}
	q := mutated{Review: r, plugin: p, objects: objects{store: p.Store, custom: p.Custom, known: map[resource.Key]services.Object{}}}
	invocations, err := q.invocations(ctx)
	if err != nil {
		return err
	}
	for i := range invocations {
		if err := q.invoke(ctx, &invocations[i]); err != nil {
			return err
		}
	}
	return q.refuse()
}

// invocations returns what applies to the object as it is before all policies.
func (q *mutated) invocations(ctx context.Context) (list []invocation, err error) {
	bindings := map[string][]Binding{}
	for _, b := range q.plugin.Bindings.List("") {
		bindings[b.spec.PolicyName] = append(bindings[b.spec.PolicyName], b)
	}
	for _, policy := range q.plugin.Policies.List("") {
		p := policy.mutating
		as, matches, err := p.criteria.match(ctx, q.Review, q.plugin.Labels)
		if err != nil {
			q.fail(p, nil, fmt.Errorf("failed to configure policy: %w", err), services.ReasonForbidden)
		}
		if err != nil || !matches {
			continue
		}
		for _, b := range bindings[p.name] {
			params, err := q.paramsOf(ctx, p, b.binding)
			if err != nil {
				q.fail(p, b.binding, fmt.Errorf("failed to configure binding: %w", err), services.ReasonForbidden)
			}
			for _, object := range params {
				list = append(list, invocation{p, b.binding, as, object})
			}
		}
	}
	return list, deadline.Ended(ctx)
}

// paramsOf returns the parameters of a binding; none if it does not match the request.
func (q *mutated) paramsOf(ctx context.Context, p *mutating, b *binding) ([]map[string]any, error) {
	if b.criteria != nil {
		if _, matches, err := b.criteria.match(ctx, q.Review, q.plugin.Labels); err != nil || !matches {
			return nil, err
		}
	}
	return q.objects.of(ctx, p.spec.ParamKind, b.spec.ParamRef, q.Namespace)
}

// invoke applies one invocation. The error is one that no failure policy covers.
func (q *mutated) invoke(ctx context.Context, i *invocation) error {
	before, err := q.Current()
	if err != nil || len(before) == 0 {
		return err
	}
	seen, known := q.Seen[i.key()]
	if q.Round > 0 && (!known || !i.reinvokes() || review.Same(seen, before)) {
		return nil
	}
	programs := q.plugin.compiled.get(&i.programs, i.compile)
	if programs.err != nil {
		q.fail(i.mutating, i.binding, programs.err, services.ReasonInvalid)
		return nil
	}
	bound := cel.Bindings{Params: i.params}
	if i.namespace && q.Namespace != "" && !q.IsNamespace() {
		if bound.Namespace, err = q.objects.namespace(ctx, q.Namespace); err != nil {
			return err
		}
	}
	request, err := q.Expressions(ctx, q.plugin.Expressions, i.as)
	matches := false
	if err == nil {
		matches, err = programs.conditions.Match(ctx, request, cel.Bindings{Params: i.params})
	}
	if err != nil || !matches {
		return q.unless(ctx, i, err)
	}
	for _, m := range programs.list {
		if err := q.unless(ctx, i, q.change(ctx, i, m, bound)); err != nil {
			return err
		}
	}
	after, err := q.Current()
	if err != nil {
		return err
	}
	q.Seen[i.key()] = after
	if !review.Same(before, after) {
		q.Again()
	}
	return nil
}

// unless records the error of an invocation, and returns one that no failure policy covers.
func (q *mutated) unless(ctx context.Context, i *invocation, err error) error {
	switch {
	case deadline.Ended(ctx) != nil:
		return deadline.Ended(ctx)
	case errors.Is(err, services.ErrNoConverter):
		return err
	case err != nil:
		q.fail(i.mutating, i.binding, err, services.ReasonInvalid)
	}
	return nil
}

// change applies one mutation to the current object.
func (q *mutated) change(ctx context.Context, i *invocation, m mutation, b cel.Bindings) error {
	request, err := q.Expressions(ctx, q.plugin.Expressions, i.as)
	if err != nil {
		return err
	}
	result, err := m.expression.Mutation(ctx, request, b)
	if err != nil {
		return err
	}
	object, _, err := q.As(ctx, i.as)
	if err != nil {
		return err
	}
	after := object
	switch {
	case m.merge && q.Converter == nil:
		return services.ErrNoConverter
	case m.merge:
		if after, err = q.Converter.Merge(ctx, object, result, i.as); err != nil {
			return fmt.Errorf("error applying patch: %w", err)
		}
	default:
		after, err = admissionreview.Patched(ctx, object, admissionreview.Answer{Patch: result})
		if jsonpatch.TestFailed(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("JSON Patch: %s", jsonpatch.Why(err))
		}
	}
	if review.Same(object, after) {
		return nil
	}
	return q.ReplaceAs(ctx, i.as, after)
}

// fail records that a policy refuses the request, unless its failure policy is Ignore.
func (q *mutated) fail(p *mutating, b *binding, err error, reason string) {
	switch {
	case p.ignores():
	case b == nil:
		q.denied = append(q.denied, refusal{fmt.Sprintf("policy %q denied request: %v", p.name, err), reason})
	default:
		q.denied = append(q.denied, refusal{fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", p.name, b.name, err), reason})
	}
}

// refuse returns the error of all policies that refuse the request.
func (q *mutated) refuse() error {
	if len(q.denied) == 0 {
		return nil
	}
	s := q.Forbid("%s", q.denied[0].message)
	s.Message, s.Reason, s.Code = q.denied[0].message, q.denied[0].reason, http.StatusForbidden
	if s.Details == nil {
		s.Details = &services.StatusDetails{}
	}
	for _, d := range q.denied {
		s.Details.Causes = append(s.Details.Causes, services.StatusCause{Message: d.message})
	}
	return s
}
