package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/routes"
	"github.com/portico-platform/portico/services/kit/run/slis"
)

// checks serves the checks as a process does.
func checks(h *run.Health) http.Handler {
	r := routes.New()
	h.Routes(r)
	return r
}

// eventually waits until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the condition does not hold within a minute")
		}
	}
}

// status returns the code of a path of the status page.
func status(t *testing.T, r *run.Running, path string) int {
	t.Helper()
	response, err := http.Get("http://" + r.StatusAddress() + path)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func TestStatusPage(t *testing.T) {
	running := start(t, app(), "--status-address=127.0.0.1:0")
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 200, "/healthz": 200, "/livez/ping": 200, "/livez/none": 404, "/livez/shutdown": 404,
		"/readyz/shutdown": 200, "/metrics": 200, "/": 404,
	} {
		if got := status(t, running, path); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

// TestOutcomesOfChecks: later releases count the outcomes of health checks.
func TestOutcomesOfChecks(t *testing.T) {
	if code := status(t, start(t, app(), "--status-address=127.0.0.1:0", "--emulated-version=1.21"), slis.Path); code != 404 {
		t.Errorf("release 1.21: got %d", code)
	}
	var broken atomic.Bool
	running := start(t, app(run.Service{Name: "mirrored", Start: func(_ context.Context, n *run.Node) error {
		n.Health.Add(run.Check{Name: "mirror", Probe: func(context.Context) error {
			if broken.Load() {
				return errors.New("a secret reason")
			}
			return nil
		}})
		return nil
	}}), "--status-address=127.0.0.1:0", "--emulated-version=1.36")
	for _, state := range []bool{false, true} {
		broken.Store(state)
		for range 2 {
			status(t, running, "/readyz")
		}
	}
	status(t, running, "/livez")
	code, got := page(t, running, slis.Path)
	for _, want := range []string{
		"# TYPE process_start_time_seconds gauge", `kubernetes_healthcheck{name="mirror",type="readyz"} 0`, `kubernetes_healthcheck{name="ping",type="livez"} 1`,
		`kubernetes_healthchecks_total{name="mirror",status="success",type="readyz"} 2`, `kubernetes_healthchecks_total{name="mirror",status="error",type="readyz"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if code != 200 || strings.Contains(got, "secret") || strings.Contains(got, "go_goroutines") {
		t.Errorf("got %d\n%s", code, got)
	}
}

func TestHealth(t *testing.T) {
	var broken atomic.Bool
	var h run.Health
	h.Add(run.Check{Name: "ping", Live: true, Probe: func(context.Context) error { return nil }})
	h.Add(run.Check{Name: "mirror", Probe: func(context.Context) error {
		if broken.Load() {
			return errors.New("a secret reason")
		}
		return nil
	}})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		checks(&h).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	type answers map[string]string
	for state, want := range map[bool]answers{
		false: {
			"/livez":                                "ok",
			"/readyz?verbose":                       "[+]ping ok\n[+]mirror ok\nreadyz check passed\n",
			"/healthz?verbose":                      "[+]ping ok\n[+]mirror ok\nhealthz check passed\n",
			"/livez?verbose":                        "[+]ping ok\nlivez check passed\n",
			"/readyz/mirror?verbose":                "[+]mirror ok\nreadyz check passed\n",
			"/readyz?verbose&exclude=mirror":        "[+]ping ok\n[+]mirror excluded: ok\nreadyz check passed\n",
			"/readyz?exclude=mirror&exclude=ping":   "ok",
			"/readyz?verbose&exclude=does-not-exit": "[+]ping ok\n[+]mirror ok\nwarn: some health checks cannot be excluded: no matches for [\"does-not-exit\"]\nreadyz check passed\n",
		},
		true: {
			"/livez":                 "ok",
			"/readyz":                "[+]ping ok\n[-]mirror failed: reason withheld\nreadyz check failed\n",
			"/readyz/mirror":         "[-]mirror failed: reason withheld\nreadyz check failed\n",
			"/readyz?exclude=mirror": "ok",
		},
	} {
		broken.Store(state)
		for path, body := range want {
			code, got := get(path)
			if got != body {
				t.Errorf("%s: got\n%s\nwant\n%s", path, got, body)
			}
			if failed := strings.Contains(body, "[-]"); failed != (code == 500) {
				t.Errorf("%s: got status %d", path, code)
			}
		}
	}
}

// TestPartialCheck: a failing check of a part is named, and fails only when it alone is requested.
func TestPartialCheck(t *testing.T) {
	h := &run.Health{}
	h.Add(run.Check{Name: "part", Partial: true, Probe: func(context.Context) error { return errors.New("down") }})
	for path, want := range map[string]string{
		"/readyz":         "200 ok",
		"/readyz?verbose": "200 [-]part failed: reason withheld\nreadyz check passed\n",
		"/readyz/part":    "500 [-]part failed: reason withheld\nreadyz check failed\n",
	} {
		w := httptest.NewRecorder()
		checks(h).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := fmt.Sprint(w.Code, " ", w.Body); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestAStuckCheck: a stuck check fails in time, together with all others, and is not run
// again while it is stuck.
func TestAStuckCheck(t *testing.T) {
	var h run.Health
	var runs atomic.Int64
	release := make(chan struct{})
	defer close(release)
	const stuck = 10
	for n := range stuck {
		h.Add(run.Check{Name: fmt.Sprint("stuck-", n), Probe: func(context.Context) error {
			runs.Add(1)
			<-release // ignores the context
			return nil
		}})
	}
	h.Add(run.Check{Name: "ping", Live: true, Probe: func(context.Context) error { return nil }})
	began := time.Now()
	var askers sync.WaitGroup
	for range 20 {
		askers.Go(func() {
			w := httptest.NewRecorder()
			checks(&h).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
			if body := w.Body.String(); w.Code != 500 || !strings.Contains(body, "[-]stuck-0 failed") || !strings.Contains(body, "[-]stuck-9 failed") || !strings.Contains(body, "[+]ping ok") {
				t.Errorf("got %d %s", w.Code, body)
			}
		})
	}
	quickest := time.Hour
	for n := 0; n < 5 && quickest > time.Second; n++ { // if it ran the others, it would always take the two seconds that they have
		w, asked := httptest.NewRecorder(), time.Now()
		checks(&h).ServeHTTP(w, httptest.NewRequest("GET", "/livez", nil))
		if quickest = min(quickest, time.Since(asked)); w.Code != 200 {
			t.Errorf("/livez: %d", w.Code)
		}
	}
	if quickest > time.Second {
		t.Errorf("/livez: after %v", quickest)
	}
	askers.Wait()
	if took := time.Since(began); took > 15*time.Second { // it takes two seconds, and one after the other it would take twenty
		t.Errorf("it took %v", took)
	}
	if n := runs.Load(); n != stuck {
		t.Errorf("%d stuck checks were run %d times", stuck, n)
	}
}

// TestStopDelay: after the signal the process continues to serve, and is not ready.
func TestStopDelay(t *testing.T) {
	ctx, tell := context.WithCancel(t.Context())
	begun, stopped := make(chan struct{}), make(chan struct{})
	health, answers := make(chan *run.Health, 1), make(chan string, 1)
	service := run.Service{Name: "slow", Start: func(_ context.Context, n *run.Node) error {
		health <- n.Health
		n.DelayStop(time.Second, func() { close(begun) })
		n.OnStop(func(context.Context) { close(stopped) })
		n.Go("asking", func(context.Context) error {
			<-begun
			w := httptest.NewRecorder()
			checks(n.Health).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
			answers <- w.Body.String()
			return nil
		})
		return nil
	}}
	ended := make(chan error, 1)
	go func() { ended <- run.Run(ctx, app(service), []string{"--log-level=error", "--livez-grace-period=1ns"}) }()
	served := checks(<-health)
	eventually(t, func() bool { // a process that is still starting is not live, and stops at once
		w := httptest.NewRecorder()
		served.ServeHTTP(w, httptest.NewRequest("GET", "/livez", nil))
		return w.Code == http.StatusOK
	})
	began := time.Now()
	tell()
	<-begun
	if body := <-answers; !strings.Contains(body, "[-]shutdown") {
		t.Errorf("/readyz: %s", body)
	}
	<-stopped
	if took := time.Since(began); took < time.Second {
		t.Errorf("it stopped after %v", took)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
