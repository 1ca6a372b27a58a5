// Package prepared builds what a front door needs and what follows from its flags alone: the
// type engine and the default objects of a cluster. That is most of the CPU time of a
// start, so it is done while other services of the process start. It does no I/O.
package prepared

import (
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Options are the flags.
type Options struct {
	Vocabulary    vocabulary.Vocabulary
	Release       release.Release
	Gates         featuregate.Gates
	RuntimeConfig []string
}

// Parts are what is built.
type Parts struct {
	Engine *typesystem.Engine
	// Defaults are the default objects of a cluster, in the order of their creation.
	Defaults []map[string]any
}

// Begin begins to build, and returns a function that waits for the result. Its error is a usage error, or
// a mistake in the built-in data.
func Begin(o Options) func() (*Parts, error) {
	built := sync.OnceValues(func() (*Parts, error) { return build(o) })
	go func() { _, _ = built() }()
	return built
}

func build(o Options) (*Parts, error) {
	// Section "Stability levels".
	runtimeConfig, err := runtimeconfig.Parse(o.RuntimeConfig...)
	if err != nil {
		return nil, run.Usagef("--runtime-config: %v", err)
	}
	types, err := catalogue.New(catalogue.Options{Vocabulary: o.Vocabulary, Release: o.Release, RuntimeConfig: runtimeConfig, Feature: o.Gates.On})
	if err != nil {
		return nil, run.Usagef("--runtime-config: %v", err)
	}
	engine, err := typesystem.New(types, typesystem.Options{Vocabulary: o.Vocabulary, WithoutApply: !o.Gates.On(featuregate.ServerSideApply), Features: o.Gates})
	if err != nil {
		return nil, err
	}
	defaults, err := bootstrap.Objects(o.Vocabulary, o.Release, o.Gates.On)
	return &Parts{Engine: engine, Defaults: defaults}, err
}
