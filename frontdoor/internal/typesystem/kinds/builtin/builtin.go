// Package builtin joins the files of package kinds with the Go functions that they
// name, which are in the folders of the kinds. It decides nothing itself. It serves
// "Resources and their fields" of the specification.
package builtin

import (
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules/cluster"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules/network"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules/pods"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules/storage"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules/workloads"
)

// Read returns what is known of the built-in kinds, with all functions found. All
// callers share it and must not modify it. An error is a mistake in a file.
var Read = sync.OnceValues(func() (*kinds.Set, error) {
	set, err := kinds.Read()
	if err != nil {
		return nil, err
	}
	all := kinds.Functions{Checks: map[string]rules.CheckFunc{}, Derive: map[string]rules.DeriveFunc{}}
	for _, functions := range tables {
		if err := all.Join(functions); err != nil {
			return nil, err
		}
	}
	return set, set.Resolve(all)
})

// tables are the functions of all folders.
var tables = [...]kinds.Functions{
	{Checks: rules.Comparisons},
	{Checks: pods.Comparisons, Derive: pods.Derivations},
	{Checks: workloads.Comparisons, Derive: workloads.Derivations},
	{Checks: network.Comparisons, Derive: network.Derivations},
	{Checks: storage.Comparisons, Derive: storage.Derivations},
	{Checks: cluster.Comparisons, Derive: cluster.Derivations},
}
