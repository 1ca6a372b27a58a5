package cel

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Variable is a named expression, which later expressions use as variables.name. It is
// evaluated when it is first used.
type Variable struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// Composition compiles the expressions of a policy, which share its variables. It is safe
// for concurrent use.
type Composition struct {
	compiler *admissioncel.CompositedCompiler
	params   bool

	mu   sync.Mutex
	envs map[composed]*cel.Env
}

// composed identifies an environment of a composition.
type composed struct {
	variables variables
	kind      environment.Type
}

// Compose compiles variables. They and the expressions may use params if the policy has a
// paramKind. Policies without variables share a composition.
func (e *Engine) Compose(list []Variable, params bool) (*Composition, error) {
	if len(list) > 0 {
		return e.compose(list, params)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.plain[params]; known != nil {
		return known, nil
	}
	made, err := e.compose(nil, params)
	if err == nil {
		e.plain[params] = made
	}
	return made, err
}

func (e *Engine) compose(list []Variable, params bool) (*Composition, error) {
	compiler, err := admissioncel.NewCompositedCompilerForTypeChecking(e.Base())
	if err != nil {
		return nil, err
	}
	c := &Composition{compiler: compiler, params: params, envs: map[composed]*cel.Env{}}
	compiler.Compiler = c
	for _, v := range list {
		c.declare(v, environment.StoredExpressions)
	}
	return c, nil
}

// declare compiles a variable for the expressions that are compiled afterwards.
func (c *Composition) declare(v Variable, kind environment.Type) admissioncel.CompilationResult {
	return c.compiler.CompileAndStoreVariable(named{expression{source: v.Expression, outputs: []*cel.Type{cel.AnyType}}, v.Name}, c.declared(true), kind)
}

// named is an expression with the name of a variable.
type named struct {
	expression
	name string
}

func (n named) GetName() string { return n.name }

func (c *Composition) declared(authorizer bool) admissioncel.OptionalVariableDeclarations {
	return admissioncel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: authorizer}
}

// CompileCELExpression implements admissioncel.Compiler.
func (c *Composition) CompileCELExpression(x admissioncel.ExpressionAccessor, o admissioncel.OptionalVariableDeclarations, kind environment.Type) admissioncel.CompilationResult {
	return c.compile(expression{source: x.GetExpression(), outputs: x.ReturnTypes()}, variables{params: o.HasParams, authorizer: o.HasAuthorizer}, kind)
}

func (c *Composition) compile(x expression, v variables, kind environment.Type) admissioncel.CompilationResult {
	env, err := c.environment(v, kind)
	if err != nil {
		return uncompiled(x, apiservercel.ErrorTypeInternal, err.Error(), nil)
	}
	return compileIn(env, x)
}

// environment returns the environment with the variables of the policy and of admission.
func (c *Composition) environment(v variables, kind environment.Type) (*cel.Env, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := composed{v, kind}
	if known, ok := c.envs[key]; ok {
		return known, nil
	}
	base, err := c.compiler.Env(kind)
	if err != nil {
		return nil, err
	}
	options, types := declarations(v)
	provider := apiservercel.NewDeclTypeProvider(types...)
	provider.SetRecognizeKeywordAsFieldName(true)
	more, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	made, err := base.Extend(append(options, more...)...)
	if err == nil && v.patch {
		made, err = patchTypes(made)
	}
	if err != nil {
		return nil, fmt.Errorf("declaring the variables of a policy: %w", err)
	}
	c.envs[key] = made
	return made, nil
}

// Expressions are compiled expressions of a policy.
type Expressions struct {
	compiler *admissioncel.CompositedCompiler
	programs []admissioncel.CompilationResult
}

// Result is the value of an expression.
type Result struct {
	// True is set for true, Text for a string.
	True bool
	Text string
	// Type is the name of the value's type; empty if the expression failed or is empty.
	Type string
	Err  error
}

// The types of results that policies distinguish.
const (
	TypeString = "string"
	TypeNull   = "null_type"
)

// Expressions compiles expressions of one use. An empty one has an empty result.
func (c *Composition) Expressions(use Use, sources []string) Expressions {
	x := Expressions{compiler: c.compiler, programs: make([]admissioncel.CompilationResult, len(sources))}
	for i, source := range sources {
		if source != "" {
			x.programs[i] = c.compile(expression{source, use.outputs()}, use.variables(c.params), environment.StoredExpressions)
		}
	}
	return x
}

// Budget is the cost that the expressions of a policy may have for one request and one
// object of its paramKind.
const Budget = celconfig.RuntimeCELCostBudget

// Evaluate evaluates the expressions in their order, and returns what is left of a budget.
// The error means that the rest was not evaluated: the budget is spent, authz made no
// decision, the context is over, or the request is not readable.
func (x Expressions) Evaluate(ctx context.Context, r *Request, b Bindings, budget int64) ([]Result, int64, error) {
	if len(x.programs) == 0 {
		return nil, budget, nil
	}
	found, left, err := r.evaluate(x.compiler.CreateContext(ctx), x.programs, b, budget)
	if err != nil {
		return nil, left, err
	}
	results := make([]Result, len(found))
	for i, f := range found {
		results[i].Err = f.Error
		if f.EvalResult == nil {
			continue
		}
		results[i].Type = f.EvalResult.Type().TypeName()
		switch value := f.EvalResult.Value().(type) {
		case bool:
			results[i].True = value
		case string:
			results[i].Text = value
		}
	}
	return results, left, nil
}

// Match reports whether all conditions are true, as Engine.Match does.
func (x Expressions) Match(ctx context.Context, r *Request, b Bindings) (bool, error) {
	if len(x.programs) == 0 {
		return true, nil
	}
	found, _, err := r.evaluate(x.compiler.CreateContext(ctx), x.programs, b, celconfig.RuntimeCELCostBudgetMatchConditions)
	if err != nil {
		return false, err
	}
	return met(found)
}
