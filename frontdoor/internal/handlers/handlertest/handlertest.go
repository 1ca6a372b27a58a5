// Package handlertest holds what tests of several handlers need: the built-in types, and an
// admission that accepts everything. Only tests import it.
package handlertest

import (
	"context"
	"sync"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// builtin has the built-in types. All tests of a package share it, since building it is
// expensive.
var builtin = sync.OnceValues(func() (*typesystem.Engine, error) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		return nil, err
	}
	return typesystem.New(types, typesystem.Options{Vocabulary: vocabulary.K8s()})
})

// Engine returns the engine of the built-in types, in the vocabulary of Kubernetes.
func Engine(t testing.TB) *typesystem.Engine {
	t.Helper()
	engine, err := builtin()
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// EngineOf returns an engine of the built-in types of a release, with the values of --runtime-config.
func EngineOf(t testing.TB, r release.Release, config ...string) *typesystem.Engine {
	t.Helper()
	parsed, err := runtimeconfig.Parse(config...)
	if err != nil {
		t.Fatal(err)
	}
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: r, RuntimeConfig: parsed})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := typesystem.New(types, typesystem.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// AdmitAll is an admission without plugins.
type AdmitAll struct{}

// Mutate implements services.Admission.
func (AdmitAll) Mutate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, nil
}

// Validate implements services.Admission.
func (AdmitAll) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, nil
}
