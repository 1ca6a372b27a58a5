package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Use is what an expression of a policy is for. It decides what the expression may evaluate
// to and which variables it may use.
type Use int

const (
	// Condition is true or false.
	Condition Use = iota
	// Message is a string, and may not use authorizer.
	Message
	// Annotation is a string or null.
	Annotation
	// ApplyConfiguration is an Object: the fields to merge into the object.
	ApplyConfiguration
	// JSONPatch is a list of operations.
	JSONPatch
)

// outputs are the types that the expression may evaluate to.
func (u Use) outputs() []*cel.Type {
	switch u {
	case Message:
		return []*cel.Type{cel.StringType}
	case Annotation:
		return []*cel.Type{cel.StringType, cel.NullType}
	case ApplyConfiguration:
		return []*cel.Type{types.NewObjectType("Object")}
	case JSONPatch:
		return []*cel.Type{cel.ListType(types.NewObjectType("JSONPatch"))}
	}
	return []*cel.Type{cel.BoolType}
}

// variables are those that the expression may use in a policy with or without a paramKind.
func (u Use) variables(params bool) variables {
	return variables{params: params, authorizer: u != Message, patch: u == ApplyConfiguration || u == JSONPatch}
}

// environmentOf returns the environment of new expressions, or of those that a stored object
// has already.
func environmentOf(stored bool) environment.Type {
	if stored {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

// CheckMatch returns why a condition of a webhook or of an admission service cannot be used,
// in the words of the original; nil if it can.
func (e *Engine) CheckMatch(source string) error { return e.CheckCondition(source, false, false) }

// CheckCondition is CheckMatch for an object that may have params, or that is stored with
// the same condition.
func (e *Engine) CheckCondition(source string, params, stored bool) error {
	v := matchVariables()
	v.params = params
	if result := e.compile(condition(source), v, environmentOf(stored)); result.Error != nil {
		return result.Error
	}
	return nil
}

// Checker checks the expressions of one policy that is being written. It is not safe for
// concurrent use.
type Checker struct{ composition *Composition }

// Checker returns a checker for a policy with or without a paramKind. Errors of its methods
// are in the words of the original.
func (e *Engine) Checker(params bool) (*Checker, error) {
	c, err := e.compose(nil, params)
	return &Checker{c}, err
}

// Variable returns why a variable cannot be used. Expressions that are checked later may use
// it, in either case.
func (x *Checker) Variable(v Variable, stored bool) error {
	result := x.composition.declare(v, environmentOf(stored))
	if result.Error != nil {
		return result.Error
	}
	return nil
}

// Expression returns why an expression cannot be used. stored means that the stored object
// has the same one.
func (x *Checker) Expression(use Use, source string, stored bool) error {
	c := x.composition
	result := c.compile(expression{source, use.outputs()}, use.variables(c.params), environmentOf(stored))
	if result.Error != nil {
		return result.Error
	}
	return nil
}
