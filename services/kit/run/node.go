package run

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/kit/run/memory"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Node is a service's view of its process.
type Node struct {
	// Service is the name of the service that this view belongs to.
	Service string
	Log     *slog.Logger
	// Vocabulary is the vocabulary of API names of the process.
	Vocabulary vocabulary.Vocabulary
	// Release is the Kubernetes release whose API the process serves.
	Release release.Release
	// Gates are the feature gates of the process.
	Gates featuregate.Gates
	// Flags are the parsed flags of the process.
	Flags *pflag.FlagSet
	// Metrics is the process's registry.
	Metrics *prometheus.Registry
	// Memory bounds the caches of the process.
	Memory *memory.Budget
	// Ledger counts the memory that clients and peers make the process hold.
	Ledger *ledger.Ledger
	// Tracer begins the traces of the process; nil when it sends none.
	Tracer *tracing.Tracer
	// Health holds the process's health checks.
	Health *Health

	process *process
	ctx     context.Context // of the loops
	cancel  context.CancelFunc
	loops   *sync.WaitGroup
	stops   []func(context.Context)
}

// process is shared by all nodes of one process.
type process struct {
	transport *transport
	offered   map[string]any  // by the contract's name; only touched during the start
	dialed    map[string]bool // which of them are clients of another process
	exits     []func()
	closing   []func() // called when the stop begins
	// stopDelay is how long the process continues to serve after a signal.
	stopDelay time.Duration
	started   atomic.Bool // all services have started
	expiry    *expiry.Watch
	failed    chan error
	// abandon cancels a start in progress.
	abandon context.CancelCauseFunc
}

// fail reports a fatal error. Only the first one is kept.
func (p *process) fail(err error) {
	select {
	case p.failed <- err:
		p.abandon(err)
	default:
	}
}

// Go runs a loop until the service is stopped; its ctx ends then. An error ends
// the process.
func (n *Node) Go(what string, loop func(ctx context.Context) error) {
	n.loops.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				n.Log.Error("panicked", "loop", what, "panic", p, "stack", string(debug.Stack()))
				n.process.fail(fmt.Errorf("%s: %s panicked: %v", n.Service, what, p))
			}
		}()
		if err := loop(n.ctx); err != nil && n.ctx.Err() == nil {
			n.process.fail(fmt.Errorf("%s: %s: %w", n.Service, what, err))
		}
	})
}

// WatchCertificates watches the expiry of certificates that no marked flag names.
func (n *Node) WatchCertificates(s expiry.Source) { n.process.expiry.Add(s) }

// DelayStop makes the process continue to serve for d after a signal, so that load
// balancers can remove it first. The longest delay of all services is used. begun is
// called when the delay begins.
func (n *Node) DelayStop(d time.Duration, begun func()) {
	n.process.stopDelay = max(n.process.stopDelay, d)
	n.process.closing = append(n.process.closing, begun)
}

// OnStop registers a function that is called when the service stops, before the context of
// its loops ends; the last one registered is called first. ctx bounds its time.
func (n *Node) OnStop(f func(ctx context.Context)) { n.stops = append(n.stops, f) }

// OnExit registers a function that is called when all services of the process have
// stopped, such as closing a shared connection; the last one registered is called first.
func (n *Node) OnExit(f func()) { n.process.exits = append(n.process.exits, f) }

// Default sets the value of a flag unless the user has set it. Flags that the process does
// not have are ignored.
func (n *Node) Default(flag, value string) error {
	f := n.Flags.Lookup(flag)
	if f == nil || f.Changed {
		return nil
	}
	return f.Value.Set(value)
}

// stop calls the stop functions of the service and then ends its loops. It returns when ctx
// ends, with a log line if the service has not stopped.
func (n *Node) stop(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, f := range slices.Backward(n.stops) {
			f(ctx)
		}
		n.cancel()
		n.loops.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		n.cancel()
		n.Log.Warn("not stopped in time")
	}
}
