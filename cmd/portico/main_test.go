package main

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestInOneProcess runs the end-to-end tests against an all-in-one in the test's own
// process, in both vocabularies.
func TestInOneProcess(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		t.Run(v.Name, func(t *testing.T) {
			e2e.TestBodies(t, start(t, v))
		})
	}
}

func start(t *testing.T, v vocabulary.Vocabulary) *cluster.Cluster {
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The bodies use beta versions, which later releases lack.
	args := []string{"--data-dir=" + dir, "--bind-address=" + host, "--secure-port=" + port, "--vocabulary=" + v.Name, "--emulated-version=1.21"}
	running, err := run.Start(context.Background(), app(args), args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
	cluster, err := cluster.Connect(dir, address, v)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := cluster.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// TestWrongCalls: each invalid command line is a usage error.
func TestWrongCalls(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown flag":            {"--nothing"},
		"argument":                {"serve"},
		"unknown vocabulary":      {"--vocabulary=klingon"},
		"missing certificate":     {"--tls-cert-file=nothing.crt"},
		"etcd's TLS without etcd": {"--etcd-cafile=a.crt"},
		"impossible port":         {"--secure-port=70000"},
		"impossible address":      {"--bind-address=nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(args, "--data-dir="+t.TempDir())
			running, err := run.Start(context.Background(), app(args), args)
			if running != nil {
				running.Stop()
			}
			if !errors.Is(err, run.ErrUsage) {
				t.Errorf("got %v, want a usage error", err)
			}
		})
	}
}
