package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Config is what policies are applied with.
type Config struct {
	Policies    review.Collection[Validating]
	Bindings    review.Collection[Binding]
	Custom      review.Collection[Custom]
	Store       services.Reader
	Labels      match.Labels
	Expressions *cel.Engine
	Vocabulary  vocabulary.Vocabulary
}

// Plugin applies ValidatingAdmissionPolicies.
type Plugin struct {
	Config
	compiled *cache[programs]
}

// New returns the plugin.
func New(c Config) *Plugin { return &Plugin{c, newCache[programs](c.Expressions, maxCompiled)} }

// request is a request while policies are applied to it.
type request struct {
	*review.Review
	plugin   *Plugin
	objects  objects
	bindings map[string][]Binding // by policy
	denied   []refusal
	audited  []audited
}

// refusal is the message and reason of a policy that refuses the request.
type refusal struct{ message, reason string }

// Validate refuses a request that a policy denies, with the reason of the first violated
// validation, by default Invalid (422). Policies and bindings themselves are exempt, so that
// wrong ones can be repaired.
func (p *Plugin) Validate(ctx context.Context, r *review.Review) error {
	if p.exempt(r) {
		return nil
	}
	q := request{Review: r, plugin: p, objects: objects{store: p.Store, custom: p.Custom, known: map[resource.Key]services.Object{}}}
	for _, policy := range p.Policies.List("") {
		if err := q.apply(ctx, policy.validating); err != nil {
			return err
		}
	}
	q.publish()
	return q.refuse()
}

// Concerns reports whether a policy may decide about requests like that of a review.
func (p *Plugin) Concerns(r *review.Review) bool {
	return !p.exempt(r) && len(p.Policies.List("")) > 0
}

// exempt reports whether policies do not apply to a request: to themselves, and to reviews
// of access.
func (p *Plugin) exempt(r *review.Review) bool { return exempt(p.Vocabulary, r) }

func exempt(v vocabulary.Vocabulary, r *review.Review) bool {
	switch r.Group {
	case v.Group("admissionregistration."):
		return strings.HasPrefix(r.Resource, "validatingadmissionpolic") || strings.HasPrefix(r.Resource, "mutatingadmissionpolic")
	case v.Group("authentication."), v.Group("authorization."):
		return strings.HasSuffix(r.Resource, "reviews")
	}
	return false
}

// apply applies a policy with all of its bindings. The error is one that no failure policy
// covers.
func (q *request) apply(ctx context.Context, p *validating) error {
	as, matches, err := p.criteria.match(ctx, q.Review, q.plugin.Labels)
	if err != nil {
		q.misconfigured(p, nil, err)
		return deadline.Ended(ctx)
	}
	if !matches {
		return nil
	}
	annotations := map[string][]string{}
	for _, b := range q.bindingsOf(p.name) {
		if err := q.bind(ctx, p, b.binding, as, annotations); err != nil {
			return err
		}
	}
	for key, values := range annotations {
		q.AnnotateFrom(p.name, map[string]string{key: strings.Join(values, ", ")})
	}
	return nil
}

// bindingsOf returns the bindings of a policy.
func (q *request) bindingsOf(policy string) []Binding {
	if q.bindings == nil {
		q.bindings = map[string][]Binding{}
		for _, b := range q.plugin.Bindings.List("") {
			q.bindings[b.spec.PolicyName] = append(q.bindings[b.spec.PolicyName], b)
		}
	}
	return q.bindings[policy]
}

// bind applies a policy with one binding and all of its parameters.
func (q *request) bind(ctx context.Context, p *validating, b *binding, as services.ServedType, annotations map[string][]string) error {
	if b.criteria != nil {
		_, matches, err := b.criteria.match(ctx, q.Review, q.plugin.Labels)
		if err != nil {
			q.misconfigured(p, b, err)
		}
		if err != nil || !matches {
			return deadline.Ended(ctx)
		}
	}
	params, err := q.objects.of(ctx, p.spec.ParamKind, b.spec.ParamRef, q.Namespace)
	if err != nil {
		q.misconfigured(p, b, err)
		return deadline.Ended(ctx)
	}
	if len(params) == 0 {
		return nil
	}
	evaluated, err := q.Expressions(ctx, q.plugin.Expressions, as)
	if errors.Is(err, services.ErrNoConverter) {
		return err
	}
	if err != nil {
		q.misconfigured(p, b, fmt.Errorf("failed to convert object version: %w", err))
		return deadline.Ended(ctx)
	}
	var bound cel.Bindings
	if p.namespace && q.Namespace != "" && !q.Review.IsNamespace() {
		if bound.Namespace, err = q.objects.namespace(ctx, q.Namespace); err != nil {
			return err
		}
	}
	for _, bound.Params = range params {
		v, err := p.decide(ctx, q.plugin.compiled.get(&p.programs, p.compile), evaluated, bound)
		if err != nil {
			return services.AsStatus(err)
		}
		q.act(p, b, v, annotations)
	}
	return nil
}

// misconfigured denies the request because a policy or binding cannot be applied, unless the
// failure policy is Ignore.
func (q *request) misconfigured(p *validating, b *binding, err error) {
	switch {
	case p.ignores():
	case b == nil:
		q.denied = append(q.denied, refusal{message: fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: failed to configure policy: %v", p.name, err)})
	default:
		q.deny(p, b, denial{message: fmt.Sprintf("failed to configure binding: %v", err)})
	}
}

func (q *request) deny(p *validating, b *binding, d denial) {
	q.denied = append(q.denied, refusal{fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", p.name, b.name, d.message), d.reason})
}

// act does what a binding says about a verdict.
func (q *request) act(p *validating, b *binding, v verdict, annotations map[string][]string) {
	for _, d := range v.denials {
		if b.acts(admissionregistrationv1.Deny) {
			q.deny(p, b, d)
		}
		if b.acts(admissionregistrationv1.Audit) {
			q.audited = append(q.audited, audited{d.message, p.name, b.name, d.index, b.spec.ValidationActions})
		}
		if b.acts(admissionregistrationv1.Warn) {
			q.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.name, b.name, d.message))
		}
	}
	for _, d := range v.unannotated {
		q.deny(p, b, d)
	}
	for key, value := range v.annotations {
		if !slices.Contains(annotations[key], value) {
			annotations[key] = append(annotations[key], value)
		}
	}
}

// audited is a violation in the audit log.
type audited struct {
	Message           string                                     `json:"message"`
	Policy            string                                     `json:"policy"`
	Binding           string                                     `json:"binding"`
	ExpressionIndex   int                                        `json:"expressionIndex"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// maxAudited bounds the violations in the audit log.
const maxAudited = 50

// publish adds the violations that bindings want in the audit log.
func (q *request) publish() {
	if len(q.audited) == 0 {
		return
	}
	text, err := json.Marshal(q.audited[:min(len(q.audited), maxAudited)])
	if err != nil {
		return // strings and numbers can always be encoded
	}
	q.Annotate(map[string]string{q.plugin.Vocabulary.Group("validation.policy.admission.") + "/validation_failure": string(text)})
}

// refuse returns the error of the first policy that denies the request.
func (q *request) refuse() error {
	if len(q.denied) == 0 {
		return nil
	}
	first := q.denied[0]
	s := q.Forbid("%s", first.message)
	if s.Reason, s.Code = first.reason, codeOf(first.reason); s.Reason == "" {
		s.Reason = services.ReasonInvalid
	}
	if s.Details == nil {
		s.Details = &services.StatusDetails{}
	}
	s.Details.Causes = append(s.Details.Causes, services.StatusCause{Message: first.message})
	return s
}

// codeOf returns the HTTP status code of a reason that validations may have.
func codeOf(reason string) int32 {
	switch reason {
	case services.ReasonForbidden:
		return http.StatusForbidden
	case services.ReasonUnauthorized:
		return http.StatusUnauthorized
	case services.ReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}
