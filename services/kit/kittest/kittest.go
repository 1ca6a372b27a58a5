// Package kittest runs an implementation of a contract for tests: directly, or as a
// service that is called over gRPC with mutual TLS.
package kittest

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// LocalAndRemote runs a suite with the implementation that open returns, directly and over
// gRPC.
func LocalAndRemote[T any](t *testing.T, contract *run.Contract[T], open func(*testing.T) T, suite func(*testing.T, func(*testing.T) T)) {
	t.Run("direct", func(t *testing.T) { suite(t, open) })
	t.Run("remote", func(t *testing.T) {
		suite(t, func(t *testing.T) T { return Remote(t, contract, open(t)) })
	})
}

// Remote returns a client of impl, as used by a front door in another process. It is closed
// at the end of the test.
func Remote[T any](t testing.TB, contract *run.Contract[T], impl T) T {
	t.Helper()
	return RemoteOver(t, contract, impl, func(address string) string { return address })
}

// RemoteOver is Remote with a proxy: between gets the address of the service and returns
// the address to which the client connects.
func RemoteOver[T any](t testing.TB, contract *run.Contract[T], impl T, between func(address string) string) T {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, authority, run.Service{
		Name: contract.Name, Offers: []run.Dependency{contract},
		Start: func(_ context.Context, n *run.Node) error {
			contract.Offer(n, impl)
			return nil
		},
	}, "--rpc-address=127.0.0.1:0")
	var client T
	start(t, authority, run.Service{
		Name: "frontdoor", Needs: []run.Dependency{contract},
		Start: func(ctx context.Context, n *run.Node) (err error) {
			client, err = contract.Use(ctx, n)
			return err
		},
	}, "--"+contract.Name+"-address="+between(server.RPCAddress()))
	return client
}

// start runs a service as in a process of its own, until the end of the test.
func start(t testing.TB, authority *peertls.Authority, s run.Service, args ...string) *run.Running {
	t.Helper()
	files, err := authority.Issue(t.TempDir(), s.Name)
	if err != nil {
		t.Fatal(err)
	}
	args = append(append(args, "--log-level=error"), files.Flags()...)
	running, err := run.Start(t.Context(), run.App{Name: s.Name, Services: []run.Service{s}}, args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
	return running
}

// Metric returns the value of a counter or gauge that has a label with this value; 0 if there is none.
func Metric(t testing.TB, from prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if family.GetName() == name && l.GetValue() == label {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return 0
}
