package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/resolver/dns"

	"github.com/portico-platform/portico/services/kit/run/buffers"
	"github.com/portico-platform/portico/services/kit/run/build"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/kit/run/logs"
	"github.com/portico-platform/portico/services/kit/run/memory"
	"github.com/portico-platform/portico/services/kit/run/plain"
	"github.com/portico-platform/portico/services/kit/run/slis"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/ledger"
)

// stopTimeout bounds how long the services of a process may take to stop.
const stopTimeout = 15 * time.Second

// ErrUsage marks errors of the command line: exit status 2.
var ErrUsage = errors.New("usage")

// Usagef returns an ErrUsage with a formatted one-line message.
func Usagef(format string, args ...any) error {
	return usageError(fmt.Sprintf(format, args...))
}

type usageError string

func (e usageError) Error() string        { return string(e) }
func (e usageError) Is(target error) bool { return target == ErrUsage }

// Main runs the app with the process's arguments until a signal, and exits: with 0 after
// SIGTERM, SIGINT or --help, 1 after a failure, 2 after a usage error. A second signal ends
// the process at once.
func Main(app App) {
	args, err := Expand(app, os.Args[1:], os.Environ())
	if err != nil {
		os.Exit(ExitStatus(err, app.Name, os.Stderr))
	}
	MainOf(app, args)
}

// MainOf is Main with other arguments than the process's, which are not expanded.
func MainOf(app App, args []string) {
	runtime.MemProfileRate = 0                      // the samples cost 2 % of the CPU of a write, and only a front door with --profiling shows them
	if pool, err := buffers.NewPool(); err == nil { // before any connection is made
		experimental.SetDefaultBufferPool(pool)
	}
	dns.SetMinResolutionInterval(2 * time.Second) // replicas with new addresses are found soon
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, cancel)
	os.Exit(ExitStatus(Run(ctx, app, args), app.Name, os.Stderr))
}

// ExitStatus returns the exit status of a program for an error, and prints the error, if it has a text: 0 for none, 2 for an
// ErrUsage, 1 for others.
func ExitStatus(err error, program string, errs io.Writer) int {
	if err == nil {
		return 0
	}
	text := string(logs.OneLine(strings.TrimSpace(err.Error())))
	if errors.Is(err, ErrUsage) {
		_, _ = fmt.Fprintf(errs, "%s: %s (see %s --help)\n", program, text, program)
		return 2
	}
	if text != "" {
		_, _ = fmt.Fprintf(errs, "%s: %s\n", program, text)
	}
	return 1
}

// Run starts the app and stops it when ctx ends or a service fails.
func Run(ctx context.Context, app App, args []string) error {
	app.starting = func(r *Running) { // a start would collect garbage whenever a small heap has doubled
		release, _ := r.base.Flags.GetBool("memory-release")
		go memory.Tidy(ctx, r.base.Memory, release)
	}
	running, err := Start(ctx, app, args)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrUsage) {
		return nil // stopped while starting
	}
	if err != nil || running == nil {
		return err
	}
	select {
	case <-ctx.Done():
		err = running.announce()
	case err = <-running.Failed():
	}
	running.Stop()
	return err
}

// announce begins the stop and continues to serve for the delay that services have
// requested. The error is that of a service that failed meanwhile.
func (r *Running) announce() error {
	r.begin()
	if r.process.stopDelay <= 0 {
		return nil
	}
	r.base.Log.Info("stopping after a delay", "for", r.process.stopDelay)
	timer := time.NewTimer(r.process.stopDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-r.Failed():
		return err
	}
}

// begin begins the stop: the process is no longer ready.
func (r *Running) begin() {
	r.closed.Do(func() {
		close(r.closing)
		for _, f := range r.process.closing {
			f()
		}
	})
}

// Running is a started app.
type Running struct {
	process *process
	nodes   []*Node
	base    Node // template of the nodes; its log is that of the process
	log     func(service string) *slog.Logger
	status  *plain.Server // serves health and metrics on --status-address
	stop    sync.Once
	closed  sync.Once
	closing chan struct{} // closed when the stop begins
}

// Start starts the services in order and returns when all are ready. If one fails, those
// started before are stopped. It returns nil and no error after --help.
func Start(ctx context.Context, app App, args []string) (*Running, error) {
	settings, err := parse(app, args, os.Stdout)
	if err != nil || settings == nil {
		return nil, err
	}
	r, err := newRunning(app, settings)
	if err != nil {
		return nil, err
	}
	if app.starting != nil {
		app.starting(r)
	}
	began := time.Now()
	ctx, r.process.abandon = context.WithCancelCause(ctx)
	defer r.process.abandon(nil)
	r.status.Serve(func(err error) { r.process.fail(fmt.Errorf("serving on --status-address: %w", err)) })
	for _, s := range app.Services {
		if s.Prepare != nil {
			s.Prepare(r.node(s))
		}
	}
	r.process.expiry.AddFlags(r.base.Flags)
	r.process.expiry.WarnOfExpired() // before a service waits for others, which refuse the certificate
	for _, s := range app.Services {
		if err := r.start(ctx, s); err != nil {
			r.Stop()
			return nil, err
		}
	}
	r.process.started.Store(true)
	if len(r.nodes) > 0 {
		r.process.expiry.AddFlags(r.base.Flags) // services may have set them
		r.nodes[0].Go("watching certificates", r.process.expiry.Run)
	}
	if err := r.process.transport.listen(r.process.fail); err != nil {
		r.Stop()
		return nil, err
	}
	r.base.Log.Info("started", "services", len(r.nodes), "took", time.Since(began).Round(time.Millisecond))
	return r, nil
}

func newRunning(app App, s *settings) (*Running, error) {
	r := &Running{process: &process{offered: map[string]any{}, dialed: map[string]bool{}, failed: make(chan error, 1)}, log: s.log, closing: make(chan struct{})}
	r.base = Node{
		Service: app.Name, Log: s.log(app.Name), Vocabulary: s.vocabulary, Release: s.release, Gates: s.gates, Flags: s.flags,
		Health: &Health{log: s.log("health"), outcomes: slis.New()}, Metrics: prometheus.NewRegistry(), process: r.process,
	}
	for _, warning := range s.deprecated {
		r.base.Log.Warn(warning)
	}
	budget, _ := s.flags.GetInt64("memory-budget")
	if budget < 0 {
		return nil, Usagef("--memory-budget: %d is negative", budget)
	}
	r.base.Memory = memory.NewBudget(budget, r.base.Metrics)
	r.base.Ledger = ledger.New(ledger.Room(r.base.Memory.Limit()))
	r.base.Metrics.MustRegister(held{r.base.Ledger})
	r.base.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.base.Health.Add(Check{Name: "ping", Live: true, Probe: func(context.Context) error { return nil }})
	if err := r.limitStart(s, time.Now()); err != nil {
		return nil, err
	}
	r.base.Health.Add(Check{Name: "shutdown", Probe: func(context.Context) error { return r.stopping() }})
	r.base.Metrics.MustRegister(build.Info(s.vocabulary.Name, s.release.String()))
	r.process.expiry = expiry.New(r.base.Log, nil)
	r.base.Metrics.MustRegister(r.process.expiry)
	r.base.Health.Add(Check{Name: "certificates", Note: r.process.expiry.Summary, Probe: func(context.Context) error { return r.process.expiry.Expired() }})
	var err error
	if r.base.Tracer, err = tracing.Open(s.flags, tracing.Process{Name: app.Name, Metrics: r.base.Metrics, Log: s.log("tracing")}); err != nil {
		return nil, Usagef("%v", err)
	}
	if r.process.transport, err = newTransport(s, r.base); err != nil {
		return nil, err
	}
	for _, service := range app.Services {
		if err := r.process.transport.checkNames(service.Offers); err != nil {
			return nil, err
		}
	}
	r.status, err = listenForStatus(s.text("status-address"), &r.base)
	return r, err
}

// start starts one service. It returns an error when ctx ends, or when a service that was
// started before fails.
func (r *Running) start(ctx context.Context, s Service) error {
	n := r.node(s)
	n.loops = &sync.WaitGroup{}
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.nodes = append(r.nodes, n)
	err := s.Start(ctx, n)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	for _, o := range s.Offers {
		if _, ok := r.process.offered[o.name()]; !ok {
			return fmt.Errorf("%s: has started without offering %s", s.Name, o.name())
		}
	}
	return nil
}

// node returns the node of a service, without what Start needs to run loops.
func (r *Running) node(s Service) *Node {
	n := r.base
	n.Service, n.Log = s.Name, r.log(s.Name)
	return &n
}

func (r *Running) stopping() error {
	select {
	case <-r.closing:
		return errors.New("the process is stopping")
	default:
		return nil
	}
}

// Failed returns the channel of the first failure of a running service.
func (r *Running) Failed() <-chan error { return r.process.failed }

// RPCAddress returns the address of the process's gRPC server, empty if it has none.
func (r *Running) RPCAddress() string {
	if r.process.transport.listener == nil {
		return ""
	}
	return r.process.transport.listener.Addr().String()
}

// StatusAddress returns the address of health and metrics, empty if there is none.
func (r *Running) StatusAddress() string { return r.status.Address() }

// Stop ends, in this order: readiness, calls of other processes, the services in reverse
// order of their start, shared connections, the status page. It returns after at most
// stopTimeout.
func (r *Running) Stop() {
	r.stop.Do(func() {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		r.base.Log.Info("stopping")
		r.begin()
		r.process.transport.stop(ctx)
		for _, n := range slices.Backward(r.nodes) {
			n.stop(ctx)
		}
		for _, exit := range slices.Backward(r.process.exits) {
			exit()
		}
		r.base.Tracer.Shutdown(ctx)
		r.status.Stop(ctx)
		r.base.Log.Info("stopped", "took", time.Since(began).Round(time.Millisecond))
	})
}
