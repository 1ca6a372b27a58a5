package validations

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"

	"github.com/portico-platform/portico/services"
)

// Rules are the validation rules of one version of a custom type. They are compiled when
// the first object is validated.
type Rules struct {
	compiled func() (compiled, error)
	// quantities is set if a rule may parse quantities.
	quantities bool
}

type compiled struct {
	structural *schema.Structural
	validator  *cel.Validator
}

// New returns the rules of a schema; nil if it has none.
func New(raw map[string]any, extension string) *Rules {
	if !Has(raw, extension) {
		return nil
	}
	return &Rules{compiled: sync.OnceValues(func() (compiled, error) {
		_, structural, err := typed(raw, extension)
		if err != nil {
			return compiled{}, err
		}
		return compiled{structural, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
	}), quantities: parsesQuantities(raw, extension)}
}

// Validate returns the causes for which an object violates the rules. old is the stored
// object, nil for a create: rules that compare with it are evaluated then, and violations
// in unchanged values are only warned of. found are the causes of the schema: if the object
// lacks the form that rules rely on, they are not evaluated, and one more cause says so. The
// error is that of the context.
func (r *Rules) Validate(ctx context.Context, object, old map[string]any, found []services.StatusCause) (causes []services.StatusCause, warnings []string, err error) {
	if slices.ContainsFunc(found, blocks) {
		return []services.StatusCause{cause(field.Invalid(nil, nil,
			"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))}, nil, nil
	}
	if r.quantities {
		if e := unboundedIn(object, nil); e != nil {
			return []services.StatusCause{cause(e)}, nil, nil
		}
		if unboundedIn(old, nil) != nil {
			old = nil // nothing is compared with it
		}
	}
	c, err := r.compiled()
	if err != nil {
		return []services.StatusCause{cause(field.InternalError(nil, fmt.Errorf("the validation rules cannot be compiled: %w", err)))}, nil, nil
	}
	collected := &recorder{}
	ctx = warning.WithWarningRecorder(ctx, collected)
	var options []cel.Option
	var before any
	if old != nil {
		before = old
		options = append(options, cel.WithRatcheting(common.NewCorrelatedObject(object, old, &model.Structural{Structural: c.structural})))
	}
	errs, _ := c.validator.Validate(ctx, nil, c.structural, object, before, celconfig.RuntimeCELCostBudget, options...)
	if err := ctx.Err(); err != nil {
		return nil, nil, services.AsStatus(err)
	}
	for _, e := range errs {
		causes = append(causes, cause(e))
	}
	return causes, collected.texts, nil
}

// blocks reports whether rules cannot rely on the form of an object with this cause.
func blocks(c services.StatusCause) bool {
	switch field.ErrorType(c.Reason) {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

func cause(e *field.Error) services.StatusCause {
	return services.StatusCause{Reason: string(e.Type), Message: e.ErrorBody(), Field: e.Field}
}

// recorder collects warnings.
type recorder struct{ texts []string }

// AddWarning implements warning.Recorder.
func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }
