package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	// noticed is how long readiness may lag behind the truth, answered how long any
	// request may take while a service is away, and recovered how long it may take until
	// requests succeed again once the service answers. All take three seconds at most where the
	// machine is not busy, which the log of the test shows, and fifteen or more where only gRPC's
	// keepalive notices.
	noticed, answered, recovered = 10 * time.Second, 10 * time.Second, 10 * time.Second
	// pinged is noticed for a NATS that hangs: services ping it every 10 s, and give up after two pings without answer.
	pinged = 45 * time.Second
)

// TestOutages kills and pauses one process after the other. The front door stays live,
// becomes unready within seconds, responds to requests within seconds, and recovers when
// the process is back. The probes of the Helm chart pass all the time.
func TestOutages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts many processes")
	}
	s := newSuite(t, vocabulary.Platform())
	all, override, probes := map[string]program{}, s.startOverride(t), probes{}
	for _, p := range programs() {
		if p.etcd {
			p.args = append(p.args[:len(p.args):len(p.args)], override)
		}
		address, err := loopback.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		p.args = append(p.args[:len(p.args):len(p.args)], "--status-address="+address)
		probes.add(p, address)
		all[p.name] = p
		s.start(t, p)
	}
	c := s.connect(t, "frontdoor")
	nobody := *c
	nobody.Token = ""
	eventually(t, "anonymous users may ask for health", func() bool { return nobody.Ask(t, cluster.Request{Path: "/livez"}).Code == 200 })
	t.Run(ofEvents, func(t *testing.T) { overrideAway(t, s, c) })
	for _, name := range []string{"authn", "authz", "admission", "store", "watch-hub", "etcd", "nats"} {
		for _, kill := range []bool{false, true} {
			if kill && name == "etcd" {
				continue // its data would have to be recovered first
			}
			o := outage{parent: t, suite: s, cluster: c, nobody: &nobody, program: all[name], name: name, kill: kill, probes: probes}
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
	probes          probes
}

func (o outage) run(t *testing.T) {
	o.awaitWell(t, patience)
	kubelet := o.probes.start(t, o.name)
	defer kubelet.end()
	o.begin(t)
	began, limit := time.Now(), noticed
	if o.name == "nats" && !o.kill {
		limit = pinged
	}
	for ready := true; ready; {
		ready = o.probe(t, "/readyz") == 200
		if code := o.probe(t, "/livez"); code != 200 {
			t.Errorf("/livez: %d", code)
		}
		if time.Since(began) > limit {
			t.Errorf("/readyz is still 200 after %v", time.Since(began))
			break
		}
	}
	t.Logf("/readyz turned after %v", time.Since(began))
	o.ask(t)
	if code := o.probe(t, "/livez"); code != 200 {
		t.Errorf("/livez: %d", code)
	}
	kubelet.ask(t)
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
	switch { // what starts again outlives this test
	case o.kill && o.name == "nats":
		o.suite.startNATS(o.parent)
		return
	case o.kill:
		o.suite.start(o.parent, o.program)
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

// probes are those of the Helm chart by process: liveness of all, and the readiness of front doors by which their
// Service has endpoints. deploy/helm/test compares their paths with the health checks of the program.
type probes map[string][]string

// probeTime is a probe's timeoutSeconds in the chart.
const probeTime = 4 * time.Second

func (k probes) add(p program, address string) {
	k[p.name] = []string{"http://" + address + "/livez"}
	if p.name == "frontdoor" {
		k[p.name] = append(k[p.name], "http://"+address+"/readyz?exclude="+strings.Join(append(p.peers[:len(p.peers):len(p.peers)], "nats", "storage"), "&exclude="))
	}
}

// kubelet asks probes, as a kubelet does, and fails the test when one fails.
type kubelet struct {
	stop  chan struct{}
	all   sync.WaitGroup
	asked []chan struct{} // of each probe: gets a value for an answer if somebody waits for it
}

// start asks all processes but one until end is called.
func (k probes) start(t *testing.T, away string) *kubelet {
	l := &kubelet{stop: make(chan struct{})}
	for name, list := range k {
		if name == away {
			continue
		}
		for _, probe := range list {
			asked := make(chan struct{})
			l.asked = append(l.asked, asked)
			l.all.Go(func() {
				client := http.Client{Timeout: probeTime}
				for {
					if err := passes(&client, probe); err != nil {
						t.Errorf("%s without %s: %v", name, away, err)
					}
					select {
					case <-l.stop:
						return
					case asked <- struct{}{}:
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
	return l
}

// ask returns after each probe has been asked at least once since it was called.
func (l *kubelet) ask(t *testing.T) {
	t.Helper()
	for _, asked := range l.asked {
		for range 2 { // the first may have been asked before
			select {
			case <-asked:
			case <-time.After(patience):
				t.Fatal("a probe is not answered")
			}
		}
	}
}

func (l *kubelet) end() {
	close(l.stop)
	l.all.Wait()
}

func passes(client *http.Client, probe string) error {
	answer, err := client.Get(probe)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d", probe, answer.StatusCode)
	}
	return nil
}
