// Package cel compiles and evaluates expressions of the Common Expression Language as the
// API server does: with its libraries, variables, limits of cost and messages. It wraps
// k8s.io/apiserver/pkg/cel and pkg/admission/plugin/cel, and adds what a service needs: a
// bounded cache of compiled expressions, requests in the form of the contracts, and
// authorization checks through services.Authz. It decides nothing about a request; its
// callers apply failure policies.
package cel

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
)

// Engine compiles and evaluates the expressions of one emulated release. It is safe for
// concurrent use. It builds its environments when they are first needed.
type Engine struct {
	authz    services.Authz
	release  release.Release
	programs *programs

	mu           sync.Mutex
	environments map[variables]*environment.EnvSet
	plain        map[bool]*Composition // those without variables, by whether they have params
}

// Config configures an Engine.
type Config struct {
	// Release is the emulated release. New expressions may use what it and the release
	// before it both have, so that they survive a downgrade; stored expressions may use
	// everything.
	Release release.Release
	// Authz answers the checks of the variable authorizer.
	Authz services.Authz
}

// New returns an engine.
func New(c Config) *Engine {
	return &Engine{authz: c.Authz, release: c.Release, programs: newPrograms(maxSource),
		environments: map[variables]*environment.EnvSet{}, plain: map[bool]*Composition{}}
}

// Base returns the functions and limits of expressions, without variables: what new
// expressions may use follows Config.Release, as in New.
func (e *Engine) Base() *environment.EnvSet {
	return environment.MustBaseEnvSet(version.MajorMinor(1, uint(e.release.Previous().Minor())))
}

// variables are those that an expression may use beside object, oldObject, request and
// namespaceObject.
type variables struct {
	params, authorizer bool
	// patch adds the types Object and JSONPatch.
	patch bool
}

// environment returns the environment with some variables.
func (e *Engine) environment(v variables) (*environment.EnvSet, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.environments[v]; ok {
		return known, nil
	}
	made, err := declare(e.Base(), v)
	if err != nil {
		return nil, fmt.Errorf("declaring the variables of expressions: %w", err)
	}
	e.environments[v] = made
	return made, nil
}

// expression is a source text with the types that it may evaluate to.
type expression struct {
	source  string
	outputs []*cel.Type
}

func (x expression) GetExpression() string    { return x.source }
func (x expression) ReturnTypes() []*cel.Type { return x.outputs }

// compiled returns the program of a stored expression, from the cache if it is there. The
// result has the error of one that cannot be compiled.
func (e *Engine) compiled(x expression, v variables) admissioncel.CompilationResult {
	key := programKey{source: x.source, variables: v, outputs: fmt.Sprint(x.outputs)}
	return e.programs.get(key, func() admissioncel.CompilationResult { return e.compile(x, v, environment.StoredExpressions) })
}
