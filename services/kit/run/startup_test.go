package run_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/run"
)

// TestLivezGracePeriod: a process that starts for longer than --livez-grace-period is not
// live until it has started.
func TestLivezGracePeriod(t *testing.T) {
	live := func(h *run.Health) bool {
		w := httptest.NewRecorder()
		checks(h).ServeHTTP(w, httptest.NewRequest("GET", "/livez", nil))
		return w.Code == http.StatusOK
	}
	for _, c := range []struct {
		flag string
		late bool
	}{{"--livez-grace-period=50ms", true}, {"--livez-grace-period=1h", false}, {"--livez-grace-period=0", false}} {
		service := run.Service{Name: "slow", Start: func(_ context.Context, n *run.Node) error {
			if c.late {
				eventually(t, func() bool { return !live(n.Health) })
			} else if !live(n.Health) {
				t.Errorf("%s: not live while starting", c.flag)
			}
			return nil
		}}
		running, err := run.Start(t.Context(), run.App{Name: "test", Services: []run.Service{service}}, []string{"--log-level=error", c.flag, "--status-address=127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		if got := status(t, running, "/livez"); got != http.StatusOK {
			t.Errorf("%s: got %d after the start", c.flag, got)
		}
		running.Stop()
	}
	_, err := run.Start(t.Context(), run.App{Name: "test"}, []string{"--livez-grace-period=-1s"})
	if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "--livez-grace-period") {
		t.Errorf("got %v", err)
	}
}
