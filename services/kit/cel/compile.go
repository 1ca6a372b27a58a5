package cel

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// always returns the release since which the variables exist: they are never hidden.
func always() *version.Version { return version.MajorMinor(1, 0) }

// declare adds the variables of admission to an environment.
func declare(base *environment.EnvSet, v variables) (*environment.EnvSet, error) {
	options, types := declarations(v)
	return base.Extend(environment.VersionedOptions{IntroducedVersion: always(), EnvOptions: options, DeclTypes: types}, environment.StrictCostOpt)
}

// declarations returns the variables of admission and their types.
func declarations(v variables) ([]cel.EnvOption, []*apiservercel.DeclType) {
	request, namespace := admissioncel.BuildRequestType(), admissioncel.BuildNamespaceType()
	options := append(bounded(),
		cel.Variable(admissioncel.ObjectVarName, cel.DynType),
		cel.Variable(admissioncel.OldObjectVarName, cel.DynType),
		cel.Variable(admissioncel.RequestVarName, request.CelType()),
		cel.Variable(admissioncel.NamespaceVarName, namespace.CelType()))
	if v.params {
		options = append(options, cel.Variable(admissioncel.ParamsVarName, cel.DynType))
	}
	if v.authorizer {
		options = append(options, cel.Variable(admissioncel.AuthorizerVarName, library.AuthorizerType),
			cel.Variable(admissioncel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	}
	return options, []*apiservercel.DeclType{request, namespace}
}

// patchTypes adds the types Object and JSONPatch. They have to be added last.
func patchTypes(env *cel.Env) (*cel.Env, error) {
	return env.Extend(common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), library.JSONPatch())
}

// compile compiles an expression.
func (e *Engine) compile(x expression, v variables, kind environment.Type) admissioncel.CompilationResult {
	set, err := e.environment(v)
	if err != nil {
		return uncompiled(x, apiservercel.ErrorTypeInternal, err.Error(), nil)
	}
	env, err := set.Env(kind)
	if err != nil {
		return uncompiled(x, apiservercel.ErrorTypeInternal, err.Error(), nil)
	}
	return compileIn(env, x)
}

// compileIn compiles an expression in an environment. The texts of errors are those of the
// original.
func compileIn(env *cel.Env, x expression) admissioncel.CompilationResult {
	ast, issues := env.Compile(x.source)
	if issues != nil {
		return uncompiled(x, apiservercel.ErrorTypeInvalid, "compilation failed: "+issues.String(), apiservercel.NewCompilationError(issues))
	}
	output := ast.OutputType()
	if !slices.ContainsFunc(x.outputs, func(t *cel.Type) bool { return output.IsExactType(t) || cel.AnyType.IsExactType(t) }) {
		return uncompiled(x, apiservercel.ErrorTypeInvalid, mistyped(x.outputs, output), nil)
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.CostTracking(&costs{}))
	if err != nil {
		return uncompiled(x, apiservercel.ErrorTypeInternal, "program instantiation failed: "+err.Error(), nil)
	}
	return admissioncel.CompilationResult{Program: program, ExpressionAccessor: x, OutputType: output}
}

func mistyped(allowed []*cel.Type, output *cel.Type) string {
	if len(allowed) == 1 {
		return fmt.Sprintf("must evaluate to %v but got %v", allowed[0], output)
	}
	return fmt.Sprintf("must evaluate to one of %v but got %v", allowed, output)
}

func uncompiled(x expression, kind apiservercel.ErrorType, text string, cause error) admissioncel.CompilationResult {
	return admissioncel.CompilationResult{
		ExpressionAccessor: x, Error: &apiservercel.Error{Type: kind, Detail: text, Cause: cause},
	}
}
