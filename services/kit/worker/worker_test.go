package worker_test

import (
	"context"
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
		{"*", true, true}, {"*", false, false}, {"*,x", false, true}, {"x", false, true}, {"y", true, false},
		{"*,-x", true, false}, {"-x,x", true, true}, {"", true, false},
	} {
		var got bool
		service := run.Service{Name: "w", Needs: []run.Dependency{worker.API}, Start: func(_ context.Context, n *run.Node) error {
			got = worker.Enabled(n, "x", c.byDefault)
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
