// Package cel compiles and evaluates expressions of the Common Expression Language as the
// API server does: with its libraries, variables, limits of cost and messages. It wraps
// k8s.io/apiserver/pkg/cel and pkg/admission/plugin/cel, and adds what a service needs: a
// bounded cache of compiled expressions, requests in the form of the contracts, and
// authorization checks through services.Authz. It decides nothing about a request; its
// callers apply failure policies.
package cel

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portico-platform/portico/services"
)

// Engine compiles and evaluates the expressions of one emulated release. It is safe for
// concurrent use. It builds its environments when they are first needed.
type Engine struct {
	authz    services.Authz
	release  *version.Version
	programs *programs

	mu           sync.Mutex
	environments map[variables]*environment.EnvSet
}

// Config configures an Engine.
type Config struct {
	// Release is the emulated release, as in "1.36", which it is unless given. New
	// expressions may use what it and the release before it both have, so that they survive
	// a downgrade; stored expressions may use everything.
	Release string
	// Authz answers the checks of the variable authorizer.
	Authz services.Authz
}

// New returns an engine. The error names a release that is not of the form "1.36".
func New(c Config) (*Engine, error) {
	release, err := version.ParseMajorMinor(cmp.Or(c.Release, "1.36"))
	if err != nil || release.Minor() == 0 {
		return nil, fmt.Errorf("%q is not a release such as 1.36", c.Release)
	}
	return &Engine{
		authz: c.Authz, release: version.MajorMinor(release.Major(), release.Minor()-1),
		programs: newPrograms(maxSource), environments: map[variables]*environment.EnvSet{},
	}, nil
}

// variables are those that an expression may use beside object, oldObject, request and
// namespaceObject.
type variables struct {
	params, authorizer bool
}

// environment returns the environment with some variables.
func (e *Engine) environment(v variables) (*environment.EnvSet, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.environments[v]; ok {
		return known, nil
	}
	made, err := declare(environment.MustBaseEnvSet(e.release), v)
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
