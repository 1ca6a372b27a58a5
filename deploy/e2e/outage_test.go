package e2e

import (
	"context"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/deploy/e2e/cluster"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// noticed is how long readiness may lag behind the truth, answered how long any
	// request may take while a service is away, and recovered how long it may take until
	// requests succeed again once the service answers. All take three seconds at most where the
	// machine is not busy, which the log of the test shows, and fifteen or more where only gRPC's
	// keepalive notices.
	noticed, answered, recovered = 10 * time.Second, 10 * time.Second, 10 * time.Second
)

// TestOutages kills and pauses one process after the other. The front door stays live,
// becomes unready within seconds, responds to requests within seconds, and recovers when
// the process is back.
func TestOutages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts many processes")
	}
	s := newSuite(t, vocabulary.Platform())
	all, override := map[string]program{}, s.startOverride(t)
	for _, p := range programs() {
		if p.etcd {
			p.args = append(p.args[:len(p.args):len(p.args)], override)
		}
		all[p.name] = p
		s.start(t, p)
	}
	c := s.connect(t, "frontdoor")
	nobody := *c
	nobody.Token = ""
	eventually(t, "anonymous users may ask for health", func() bool { return nobody.Ask(t, cluster.Request{Path: "/livez"}).Code == 200 })
	t.Run(ofEvents, func(t *testing.T) { overrideAway(t, s, c) })
	for _, name := range []string{"authn", "authz", "admission", "store", "watch-hub", "etcd"} {
		for _, kill := range []bool{false, true} {
			if kill && name == "etcd" {
				continue // its data would have to be recovered first
			}
			o := outage{parent: t, suite: s, cluster: c, nobody: &nobody, program: all[name], name: name, kill: kill}
			what := "paused"
			if kill {
				what = "killed"
			}
			t.Run(name+" "+what, o.run)
		}
	}
}

// outage is the absence of one process.
type outage struct {
	parent          *testing.T
	suite           *suite
	cluster, nobody *cluster.Cluster
	program         program
	name            string
	kill            bool
}

func (o outage) run(t *testing.T) {
	o.awaitWell(t, patience)
	o.begin(t)
	began := time.Now()
	for ready := true; ready; {
		ready = o.probe(t, "/readyz") == 200
		if code := o.probe(t, "/livez"); code != 200 {
			t.Errorf("/livez: %d", code)
		}
		if time.Since(began) > noticed {
			t.Errorf("/readyz is still 200 after %v", time.Since(began))
			break
		}
	}
	t.Logf("/readyz turned after %v", time.Since(began))
	o.ask(t)
	if code := o.probe(t, "/livez"); code != 200 {
		t.Errorf("/livez: %d", code)
	}
	o.end(t)
	if o.kill {
		o.awaitWell(t, patience) // it has to start first
		return
	}
	o.awaitWell(t, recovered)
}

func (o outage) begin(t *testing.T) {
	if o.kill {
		o.suite.processes[o.name].kill()
		return
	}
	if err := o.suite.processes[o.name].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.suite.processes[o.name].cmd.Process.Signal(syscall.SIGCONT) })
}

func (o outage) end(t *testing.T) {
	if o.kill {
		o.suite.start(o.parent, o.program) // it outlives this test
		return
	}
	if err := o.suite.processes[o.name].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// probe requests a health check without credentials, as a kubelet does.
func (o outage) probe(t *testing.T, path string) int {
	t.Helper()
	began := time.Now()
	got := o.nobody.Ask(t, cluster.Request{Path: path})
	if took := time.Since(began); took > answered {
		t.Errorf("%s took %v", path, took)
	}
	return got.Code
}

// ask sends requests that need the process, or do not: each is answered in time, and
// what cannot be done names who is away.
func (o outage) ask(t *testing.T) {
	for _, r := range []cluster.Request{
		{Path: "/api/v1/namespaces/default"},
		{Path: "/api/v1/namespaces"},
		{Method: "POST", Path: "/api/v1/namespaces/default/configmaps", Body: `{"metadata":{"generateName":"outage-"}}`},
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		got, err := o.cluster.Do(ctx, r)
		cancel()
		took := time.Since(began)
		if err != nil || took > answered {
			t.Errorf("%s %s: %d %v after %v", r.Method, r.Path, got.Code, err, took)
		}
		if o.name == "etcd" && got.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %s: %d without etcd", r.Method, r.Path, got.Code)
		}
		if got.Code == http.StatusServiceUnavailable && !strings.Contains(got.Body, o.name) {
			t.Errorf("%s %s: the error does not say who is away: %s", r.Method, r.Path, got.Body)
		}
	}
}

// awaitWell waits until the front door is ready and reads and writes succeed.
func (o outage) awaitWell(t *testing.T, limit time.Duration) {
	t.Helper()
	began := time.Now()
	within(t, limit, "all is well", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, r := range []cluster.Request{{Path: "/readyz"}, {Path: "/api/v1/namespaces/default"},
			{Method: "POST", Path: "/api/v1/namespaces/default/configmaps", Body: `{"metadata":{"generateName":"outage-"}}`}} {
			if got, err := o.cluster.Do(ctx, r); err != nil || got.Code >= 300 {
				return false
			}
		}
		return true
	})
	t.Logf("well after %v", time.Since(began))
}
