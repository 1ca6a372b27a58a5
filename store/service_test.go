package store

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

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

// TestHealthChecks: the checks of etcd have the names that they have in Kubernetes, each of them once, where etcd
// is in the process and where it is not.
func TestHealthChecks(t *testing.T) {
	external := "--etcd-servers=http://" + serveEtcd(t, func(*embed.Config) {})
	second := serveEtcd(t, func(*embed.Config) {})
	for name, c := range map[string]struct {
		services []run.Service
		args     []string
		want     []string
	}{
		"embedded":  {[]run.Service{embedded.Service(), Service()}, []string{"--data-dir=" + t.TempDir()}, []string{"etcd", "etcd-readiness", "etcd-space"}},
		"apart":     {[]run.Service{Service()}, []string{external}, []string{"etcd", "etcd-alarms", "etcd-readiness"}},
		"overrides": {[]run.Service{Service()}, []string{external, "--etcd-servers-overrides=/events#http://" + second}, []string{"etcd", "etcd-alarms", "etcd-alarms-events", "etcd-events", "etcd-readiness", "etcd-readiness-events"}},
	} {
		startWith(t, c.services, c.args, func(_ services.Store, n *run.Node) {
			var found []string
			for _, check := range n.Health.Checks() {
				if strings.HasPrefix(check.Name, "etcd") {
					found = append(found, check.Name)
				}
			}
			slices.Sort(found)
			if !slices.Equal(found, c.want) {
				t.Errorf("%s: %q, want %q", name, found, c.want)
			}
		})
	}
}

// with calls use in a process with etcd and the store.
func with(t *testing.T, dir string, use func(services.Store, *run.Node)) {
	t.Helper()
	startWith(t, []run.Service{embedded.Service(), Service()}, []string{"--data-dir=" + dir}, use)
}

// startWith calls use in a process with these services.
func startWith(t *testing.T, ofProcess []run.Service, args []string, use func(services.Store, *run.Node)) {
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
	app := run.App{Name: "test", Services: append(ofProcess, probe)}
	running, err := run.Start(ctx, app, append(args, "--log-level=error"))
	if err != nil {
		t.Fatal(err)
	}
	running.Stop()
}
