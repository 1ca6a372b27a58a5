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

	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Node is what a service sees of the process that it runs in.
type Node struct {
	// Service is the name of the service that this view belongs to.
	Service string
	Log     *slog.Logger
	// Vocabulary is the process's choice of names.
	Vocabulary vocabulary.Vocabulary
	// Flags are the parsed flags of the process.
	Flags *pflag.FlagSet
	// Metrics is the process's registry.
	Metrics *prometheus.Registry
	// Health holds the process's health checks.
	Health *Health

	process *process
	ctx     context.Context // ends when the loops shall end
	cancel  context.CancelFunc
	loops   *sync.WaitGroup
	stops   []func(context.Context)
}

// process is what all nodes of one process share.
type process struct {
	transport *transport
	offered   map[string]any // by the contract's name; only touched during the start
	exits     []func()
	closing   []func() // called when the stop begins
	// stopDelay is how long the process serves on after it was told to stop.
	stopDelay time.Duration
	started   atomic.Bool // all services have started
	expiry    *expiry.Watch
	failed    chan error
	// abandon ends a start that is under way.
	abandon context.CancelCauseFunc
}

// fail reports that the process cannot go on. The first report counts.
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

// DelayStop lets the process serve on for a while after it was told to stop, so that
// whoever watches its readiness can turn to others first. The longest delay of all
// services counts. begun is called when the process has been told.
func (n *Node) DelayStop(d time.Duration, begun func()) {
	n.process.stopDelay = max(n.process.stopDelay, d)
	n.process.closing = append(n.process.closing, begun)
}

// OnStop registers what has to be done when the service stops, before the
// context of its loops ends; the last one registered runs first. ctx bounds the
// time for it.
func (n *Node) OnStop(f func(ctx context.Context)) { n.stops = append(n.stops, f) }

// OnExit registers what has to be done when all services of the process have
// stopped, such as closing a connection that they share; the last one registered
// runs first.
func (n *Node) OnExit(f func()) { n.process.exits = append(n.process.exits, f) }

// Default gives a flag a value that holds unless the user gave one. Flags that
// this process does not have are ignored.
func (n *Node) Default(flag, value string) error {
	f := n.Flags.Lookup(flag)
	if f == nil || f.Changed {
		return nil
	}
	return f.Value.Set(value)
}

// stop ends the service: its stop functions, then its loops. It returns early,
// and says so in the log, when the time is over.
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
		n.Log.Warn("not stopped in time, left behind")
	}
}
