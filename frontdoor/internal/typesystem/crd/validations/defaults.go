package validations

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/portico-platform/portico/services"
)

// Defaults checks that the defaults of a definition's schemas fulfil the rules of these schemas.
type Defaults struct {
	// Extension is the prefix of extensions, for example "x-kubernetes-".
	Extension string
	// left is the budget of all rules together; 0 before the first.
	left int64
}

// Check returns the causes for which the default of a schema violates the rules of the schema and of those
// below it: as an object that stays the same, and as a new one, because rules may compare. isRoot is set for the
// schema of whole objects. The default has the form that the schema requires. Nothing is checked once the budget
// has been used up.
func (d *Defaults) Check(raw map[string]any, isRoot bool, at string) (causes []services.StatusCause) {
	if !Has(raw, d.Extension) || d.left < 0 {
		return nil
	}
	where, value := field.NewPath(at), raw["default"]
	if parsesQuantities(raw, d.Extension) {
		if e := unboundedIn(value, where); e != nil {
			return []services.StatusCause{cause(e)}
		}
	}
	_, structural, err := typed(raw, d.Extension)
	if err != nil {
		return []services.StatusCause{cause(field.Invalid(where, "", err.Error()))}
	}
	if d.left == 0 {
		d.left = celconfig.RuntimeCELCostBudget
	}
	validator := cel.NewValidator(structural, isRoot, celconfig.PerCallLimit)
	errs, left := validator.Validate(context.Background(), where, structural, value, value, d.left)
	if len(errs) == 0 {
		again, leftOfNew := validator.Validate(context.Background(), where, structural, value, nil, d.left)
		errs, left = again, min(left, leftOfNew)
	}
	d.left = left
	for _, e := range errs {
		causes = append(causes, cause(e))
	}
	return causes
}
