package cel

import (
	"context"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// MatchCondition is a condition that requests must meet. It may use the variables object,
// oldObject, request, authorizer and authorizer.requestResource.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// Match reports whether a request meets all conditions. One that is false decides, even if
// others cannot be evaluated. The error means that the caller's failure policy decides: a
// condition does not compile or fails, their cost exceeds the budget of a match, authz
// makes no decision, or the request is not readable. If the context ends first, the error
// is that of the context.
func (e *Engine) Match(ctx context.Context, conditions []MatchCondition, r *Request) (bool, error) {
	if len(conditions) == 0 {
		return true, nil
	}
	programs := make([]admissioncel.CompilationResult, len(conditions))
	for i, c := range conditions {
		programs[i] = e.compiled(condition(c.Expression), matchVariables())
	}
	results, _, err := r.evaluate(ctx, programs, Bindings{}, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		return false, err
	}
	return met(results)
}

// met reports whether all conditions are true.
func met(results []admissioncel.EvaluationResult) (bool, error) {
	var failures []error
	for _, result := range results {
		if result.EvalResult == types.False {
			return false, nil
		}
		if result.Error != nil {
			failures = append(failures, result.Error)
		}
	}
	return len(failures) == 0, utilerrors.NewAggregate(failures)
}

func matchVariables() variables { return variables{authorizer: true} }

// condition is an expression that is true or false.
func condition(source string) expression {
	return expression{source: source, outputs: []*cel.Type{cel.BoolType}}
}
