package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/worker"
)

func TestEnabled(t *testing.T) {
	for _, c := range []struct {
		controllers string
		byDefault   bool
		want        bool
	}{
		{"*", true, true}, {"*", false, false}, {"*,namespace", false, true}, {"namespace", false, true}, {"tokencleaner", true, false},
		{"*,-namespace", true, false}, {"-namespace,namespace", true, true}, {"", true, false}, {"-*", true, false},
	} {
		var got bool
		service := run.Service{Name: "w", Needs: []run.Dependency{worker.API}, Start: func(_ context.Context, n *run.Node) error {
			got = worker.Enabled(n, "namespace", c.byDefault)
			return nil
		}}
		app := run.App{Name: "test", Services: []run.Service{service}}
		running, err := run.Start(t.Context(), app, []string{"--log-level=error", "--controllers=" + c.controllers})
		if err != nil {
			t.Fatal(err)
		}
		running.Stop()
		if got != c.want {
			t.Errorf("--controllers=%s, by default %v: %v", c.controllers, c.byDefault, got)
		}
	}
}

// TestUnknownControllers: a worker does not start with a name in --controllers that is none
// of a controller.
func TestUnknownControllers(t *testing.T) {
	service := run.Service{Name: "w", Needs: []run.Dependency{worker.API}, Start: func(ctx context.Context, n *run.Node) error {
		_, err := worker.Config(ctx, n)
		return err
	}}
	app := run.App{Name: "test", Services: []run.Service{service}}
	for _, value := range []string{"bogus", "*,-bogus", "*,namespace,,", "--namespace", "*,Namespace"} {
		_, err := run.Start(t.Context(), app, []string{"--log-level=error", "--controllers=" + value})
		if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "--controllers: ") || !strings.Contains(err.Error(), "namespace, customresourcecleanup") {
			t.Errorf("%s: %v", value, err)
		}
	}
	for _, value := range []string{"*", "-*", "", "*,tokencleaner,-namespace"} {
		if _, err := run.Start(t.Context(), app, []string{"--log-level=error", "--controllers=" + value}); err == nil || strings.Contains(err.Error(), "--controllers") {
			t.Errorf("%s: %v, want only that --kubeconfig is missing", value, err)
		}
	}
}
