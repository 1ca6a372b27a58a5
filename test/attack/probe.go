package attack

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	// probeEvery is the interval of pairs of requests.
	probeEvery = 50 * time.Millisecond
	// probePatience bounds one request.
	probePatience = 20 * time.Second
)

// probe reads and writes continuously as an administrator.
type probe struct {
	admin *Actor
	path  string

	mu      sync.Mutex
	trial   Trial // the one that runs
	reads   Figures
	writes  Figures
	faults  []string
	counter int
}

func newProbe(ctx context.Context, t *Target) (*probe, error) {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	p := &probe{admin: t.Root(), path: "/api/v1/namespaces/" + namespace + "/configmaps"}
	return p, p.admin.Create(ctx, p.path, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe"},"data":{"n":"0"}}`)
}

// during sets the trial that runs, the zero Trial if none does.
func (p *probe) during(trial Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trial = trial
}

// run probes until the context ends.
func (p *probe) run(ctx context.Context) {
	ticks := time.NewTicker(probeEvery)
	defer ticks.Stop()
	for ctx.Err() == nil {
		p.counter++
		value := fmt.Sprint(p.counter)
		p.measure(ctx, &p.writes, cluster.Request{Method: http.MethodPatch, Path: p.path + "/probe",
			Type: "application/merge-patch+json", Body: `{"data":{"n":"` + value + `"}}`})
		p.measure(ctx, &p.reads, cluster.Request{Path: p.path})
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
}

// measure sends one request. Requests that began or ended during a disruptive trial are
// ignored.
func (p *probe) measure(ctx context.Context, into *Figures, r cluster.Request) {
	p.mu.Lock()
	before := p.trial
	p.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	started := time.Now()
	answer, err := p.admin.Provoke(within, r)
	took := time.Since(started)
	p.mu.Lock()
	defer p.mu.Unlock()
	if before.Disruptive || p.trial.Disruptive || ctx.Err() != nil {
		return
	}
	into.Count++
	if took > into.Slowest {
		into.Slowest, into.Trial = took, before.Name
	}
	if err == nil && answer.Code != http.StatusOK {
		err = fmt.Errorf("%d %.200s", answer.Code, answer.Body)
	}
	if err != nil && len(p.faults) < 10 {
		p.faults = append(p.faults, fmt.Sprintf("%s after %v: %v", r.Method, took.Round(time.Millisecond), err))
	}
}

func (p *probe) figures() (reads, writes Figures, faults []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads, p.writes, p.faults
}
