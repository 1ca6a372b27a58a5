package frontdoor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap/prepared"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/clienttrust"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/console"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/extensions"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/issuer"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/browsers"
	"github.com/portico-platform/portico/frontdoor/internal/http/listener"
	"github.com/portico-platform/portico/frontdoor/internal/http/records"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/webhooks"
)

// config holds the front door's flags, named as in the specification.
type config struct {
	listener       listener.Settings
	browsers       browsers.Settings
	maxStreams     int
	runtimeConfig  []string
	fairness       bool
	reads, writes  int
	watches        int
	requestTimeout time.Duration
	shutdownDelay  time.Duration
	// shutdownTimeout bounds the end of requests after shutdownDelay.
	shutdownTimeout time.Duration
	goawayChance    float64
	watchTimeout    time.Duration
	watchHistory    time.Duration
	feedBytes       int
	audit           audit.Settings
	hiddenMetrics   string
	addresses       serviceips.Settings
	// advertise is the IP address that cluster members use to reach this front door.
	advertise   string
	connections connect.Settings
	extensions  extensions.Settings
	console     console.Settings
	profiling   bool
	copiedBytes int64
	cache       watchCache
	// prepared returns what is built while services before the front door start.
	prepared func() (*prepared.Parts, error)
}

// Service returns the front door. It offers HTTPS to clients and no contract to other services.
func Service() run.Service {
	c := &config{}
	return run.Service{
		Name:    "frontdoor",
		About:   "serves the API over HTTPS",
		Needs:   []run.Dependency{contract.Store, contract.WatchHub, contract.Authn, contract.Authz, contract.Admission, bus.Conn},
		Flags:   c.register,
		Prepare: c.prepare,
		Start:   c.start,
	}
}

func (c *config) register(fs *pflag.FlagSet) {
	c.listener.Register(fs)
	c.browsers.Register(fs)
	c.console.Register(fs)
	fs.IntVar(&c.maxStreams, "http2-max-streams-per-connection", 0, fmt.Sprintf("maximum number of concurrent requests of one HTTP/2 connection; 0 for %d", defaultStreams))
	webhooks.Flags(fs)
	fs.StringSliceVar(&c.runtimeConfig, "runtime-config", nil, "group versions to enable or disable, such as batch/v1beta1=false; also api/all, api/ga, api/beta, api/alpha")
	fs.BoolVar(&c.fairness, "enable-priority-and-fairness", true, "divide requests by FlowSchemas and PriorityLevelConfigurations; otherwise reads and writes have separate limits, which users share")
	fs.IntVar(&c.reads, "max-requests-inflight", 400, "maximum number of concurrent reads; with --enable-priority-and-fairness, the sum of both limits all requests of all front doors")
	fs.IntVar(&c.writes, "max-mutating-requests-inflight", 200, "maximum number of concurrent writes; see --max-requests-inflight")
	fs.IntVar(&c.watches, "max-watches-per-user", 0, "maximum number of open watches of one user at this front door, except for system:masters; twice as many of all users together. 0 for those that fill a quarter of the memory of the machine or control group, and at least 16384")
	fs.DurationVar(&c.requestTimeout, "request-timeout", time.Minute, "timeout of requests other than watches")
	fs.DurationVar(&c.shutdownDelay, "shutdown-delay-duration", 0, "how long to keep serving after SIGTERM, while /readyz fails")
	fs.DurationVar(&c.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long requests may take to end after --shutdown-delay-duration, before their connections are closed")
	fs.Float64Var(&c.goawayChance, "goaway-chance", 0, "fraction of HTTP/2 requests, 0 to 0.02, after which the client must open a new connection, to spread clients over all front doors behind a load balancer; use 0 with one front door")
	fs.DurationVar(&c.watchTimeout, "min-request-timeout", 30*time.Minute, "minimum duration of watches that set no timeout")
	fs.DurationVar(&c.watchHistory, "feed-history", 5*time.Minute, "how long the front door keeps changes in memory")
	fs.IntVar(&c.feedBytes, "feed-bytes", 16<<20, "bytes of changes to keep in memory per watched resource type")
	fs.Int64Var(&c.copiedBytes, "copied-bytes", 128<<20, "bytes of objects to keep in memory of the resource types that are read often, if the store is in another process; 0 for none")
	fs.BoolVar(&c.profiling, "profiling", false, "serve profiles at /debug/pprof/ to users who are authorized for that path")
	fs.StringVar(&c.hiddenMetrics, "show-hidden-metrics-for-version", "", "previous release, such as 1.20, whose hidden metrics are shown; this release hides none")
	c.cache.register(fs)
	c.audit.Register(fs)
	c.addresses.Register(fs)
	fs.StringVar(&c.advertise, "advertise-address", "", "`IP` address at which members of the cluster reach this front door; if empty, --bind-address or that of the host's default interface")
	c.connections.Register(fs)
	c.extensions.Register(fs)
	clienttrust.Register(fs)
	issuer.Register(fs)
	operations.Register(fs)
}

// maxGoawayChance bounds --goaway-chance: more would keep clients connecting.
const maxGoawayChance = 0.02

// check returns a usage error for values of flags that are out of range.
func (c *config) check(n *run.Node) error {
	// Section "Deprecation rules".
	if previous := n.Release.Previous().String(); c.hiddenMetrics != "" && c.hiddenMetrics != previous {
		return run.Usagef("--show-hidden-metrics-for-version must be omitted or have the value %q: only the previous minor version is allowed", previous)
	}
	if !(c.goawayChance >= 0 && c.goawayChance <= maxGoawayChance) { // NaN is neither
		return run.Usagef("--goaway-chance: %v is not between 0 and %v", c.goawayChance, maxGoawayChance)
	}
	if c.shutdownTimeout < 0 {
		return run.Usagef("--shutdown-timeout: %v is negative", c.shutdownTimeout)
	}
	if c.watches < 0 {
		return run.Usagef("--max-watches-per-user: %d is negative", c.watches)
	}
	if c.reads < 1 || c.writes < 1 {
		return run.Usagef("--max-requests-inflight and --max-mutating-requests-inflight: %d and %d must both be positive", c.reads, c.writes)
	}
	if c.maxStreams < 0 || c.maxStreams > math.MaxInt32 {
		return run.Usagef("--http2-max-streams-per-connection: %d is not between 0 and %d", c.maxStreams, math.MaxInt32)
	}
	return nil
}

// prepare begins to build while services before this one start.
func (c *config) prepare(n *run.Node) {
	n.Health.Add(c.listener.Serving.Check())
	c.prepared = prepared.Begin(prepared.Options{Vocabulary: n.Vocabulary, Release: n.Release, Gates: n.Gates, RuntimeConfig: c.runtimeConfig})
}

// start returns once the front door serves.
func (c *config) start(ctx context.Context, n *run.Node) error {
	if err := cmp.Or(c.check(n), c.cache.check(n)); err != nil {
		return err
	}
	parts, err := c.prepared()
	if c.prepared = nil; err != nil { // it is needed once
		return err
	}
	self, err := c.self(n)
	if err != nil {
		return err
	}
	d, err := c.newDoor(ctx, n, parts)
	if err != nil {
		return err
	}
	c.listener.Authorities = clienttrust.Authorities(n)
	port, err := c.listener.Open(n.Log, n.WatchCertificates, d.operations.Peers.Protocols())
	if err != nil {
		return err
	}
	d.connections.Policy.Machine.KnowPort(port.Addr().(*net.TCPAddr).Port)
	if err := c.keepOwnService(n, d, self, port.Addr()); err != nil {
		_ = port.Close()
		return err
	}
	clients, frontDoors := d.pipeline()
	server := newServer(clients, c.maxStreams, n.Log)
	closePeers := d.operations.Peers.Serve(server, frontDoors)
	if err := records.Configure(server); err != nil {
		closePeers()
		_ = port.Close()
		return err
	}
	n.Go("serving HTTPS", func(context.Context) error { return c.listener.Serving.Serve(server, port) })
	n.DelayStop(c.shutdownDelay, func() { d.draining.Store(true) })
	n.OnStop(func(ctx context.Context) {
		d.drain() // end watches and connections, so that Shutdown does not wait for them
		d.connections.Close(ctx)
		listener.Shutdown(ctx, server, c.shutdownTimeout)
		closePeers()
	})
	n.Log.Info("serving", "url", "https://"+port.Addr().String(), "vocabulary", n.Vocabulary.Name, "emulated", n.Release)
	return nil
}

// defaultStreams is the maximum number of concurrent requests of an HTTP/2 connection
// unless --http2-max-streams-per-connection sets another.
const defaultStreams = 250

// newServer returns the HTTP server with its connection-level limits on slow clients.
// Package pace has the limits per request.
func newServer(handler http.Handler, streams int, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 3 * time.Minute, MaxHeaderBytes: 1 << 20,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: cmp.Or(streams, defaultStreams),
			// Close HTTP/2 connections that no longer respond to pings or accept no data on any stream.
			SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: answerStall,
		},
	}
}
