package policy

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/kit/cel"
)

// denial is why a policy refuses a request. index is that of the validation.
type denial struct {
	index   int
	message string
	reason  string
}

// verdict is what a policy with one set of parameters makes of a request.
type verdict struct {
	denials []denial
	// annotations are values for the audit log, by key. unannotated are those that failed.
	annotations map[string]string
	unannotated []denial
}

// failed is the verdict of expressions that cannot be evaluated.
func (p *validating) failed(err error) verdict {
	if p.ignores() {
		return verdict{}
	}
	return verdict{denials: []denial{{message: err.Error()}}}
}

// decide evaluates a policy. The error is that of a context that is over.
func (p *validating) decide(ctx context.Context, x *programs, r *cel.Request, b cel.Bindings) (verdict, error) {
	if x.err != nil {
		return p.failed(x.err), nil
	}
	matches, err := x.conditions.Match(ctx, r, cel.Bindings{Params: b.Params})
	if err != nil || !matches {
		return p.unless(ctx, err)
	}
	results, left, err := x.validations.Evaluate(ctx, r, b, cel.Budget)
	if err != nil {
		return p.unless(ctx, err)
	}
	messages, _, messageErr := x.messages.Evaluate(ctx, r, b, left)
	var v verdict
	for i, result := range results {
		var found []denial
		switch {
		case result.Err != nil:
			found = p.failed(result.Err).denials
		case messageErr != nil:
			found = p.failed(fmt.Errorf("failed messageExpression: %w", messageErr)).denials
		case !result.True:
			found = []denial{{message: p.message(i, messages[i]), reason: p.reason(i)}}
		}
		for _, d := range found {
			d.index = i
			v.denials = append(v.denials, d)
		}
	}
	results, _, err = x.annotations.Evaluate(ctx, r, b, cel.Budget)
	if err != nil {
		return p.unless(ctx, err)
	}
	p.annotate(&v, results)
	return v, deadline.Ended(ctx)
}

// unless returns the verdict of an error, or the error of a context that is over.
func (p *validating) unless(ctx context.Context, err error) (verdict, error) {
	switch {
	case deadline.Ended(ctx) != nil:
		return verdict{}, deadline.Ended(ctx)
	case err != nil:
		return p.failed(err), nil
	}
	return verdict{}, nil
}

// reason is that of a validation.
func (p *validating) reason(i int) string {
	if reason := p.spec.Validations[i].Reason; reason != nil {
		return string(*reason)
	}
	return services.ReasonInvalid
}

// message returns the message of a validation: the result of its expression if that is
// usable, else its own.
func (p *validating) message(i int, result cel.Result) string {
	v := p.spec.Validations[i]
	text := strings.TrimSpace(result.Text)
	switch {
	case result.Err == nil && text != "" && len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(text, "\n"):
		return text
	case v.Message != "":
		return strings.TrimSpace(v.Message)
	}
	return "failed expression: " + strings.TrimSpace(v.Expression)
}

// maxAnnotation bounds the value of an audit annotation, in bytes.
const maxAnnotation = 10 << 10

// annotate adds the audit annotations of a policy.
func (p *validating) annotate(v *verdict, results []cel.Result) {
	for i, result := range results {
		a := p.spec.AuditAnnotations[i]
		value := strings.TrimSpace(result.Text)
		switch {
		case result.Err != nil && !p.ignores():
			v.unannotated = append(v.unannotated, denial{message: result.Err.Error()})
		case result.Err != nil || result.Type == cel.TypeNull || result.Type == cel.TypeString && value == "":
		case result.Type == cel.TypeString:
			if v.annotations == nil {
				v.annotations = map[string]string{}
			}
			v.annotations[a.Key] = strings.ToValidUTF8(value[:min(len(value), maxAnnotation)], "")
		default:
			v.unannotated = append(v.unannotated, denial{message: fmt.Sprintf("valueExpression '%v' resulted in unsupported return type: %v. "+
				"Return type must be either string or null.", a.ValueExpression, result.Type)})
		}
	}
}

// acts reports whether a binding has an action.
func (b *binding) acts(action admissionregistrationv1.ValidationAction) bool {
	for _, a := range b.spec.ValidationActions {
		if a == action {
			return true
		}
	}
	return false
}
