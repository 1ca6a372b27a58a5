package store

import (
	"context"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/store/embedded"
)

// TestService starts the service as the all-in-one binary does, twice on the same data.
func TestService(t *testing.T) {
	dir := t.TempDir()
	with(t, dir, func(s services.Store, n *run.Node) {
		if _, err := s.Create(t.Context(), services.CreateRequest{Key: pod("a"), Content: content("a", "0")}); err != nil {
			t.Error(err)
		}
	})
	with(t, dir, func(s services.Store, n *run.Node) {
		o, err := s.Get(t.Context(), services.GetRequest{Key: pod("a"), Read: services.Read{Mode: services.AnyRevision}})
		if err != nil || o.Labels["value"] != "0" {
			t.Errorf("after the restart: %+v, %v", o, err)
		}
		for _, check := range n.Health.Checks() {
			if err := check.Probe(t.Context()); err != nil {
				t.Errorf("health check %s: %v", check.Name, err)
			}
		}
		if families, err := n.Metrics.Gather(); err != nil || len(families) == 0 {
			t.Errorf("metrics: %v", err)
		}
	})
}

// with calls use in a process with etcd and the store.
func with(t *testing.T, dir string, use func(services.Store, *run.Node)) {
	t.Helper()
	probe := run.Service{
		Name: "probe", Needs: []run.Dependency{contract.Store},
		Start: func(ctx context.Context, n *run.Node) error {
			s, err := contract.Store.Use(ctx, n)
			if err == nil {
				use(s, n)
			}
			return err
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	app := run.App{Name: "test", Services: []run.Service{embedded.Service(), Service(), probe}}
	running, err := run.Start(ctx, app, []string{"--data-dir", dir, "--log-level", "error"})
	if err != nil {
		t.Fatal(err)
	}
	running.Stop()
}
