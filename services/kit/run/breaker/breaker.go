// Package breaker lets calls to a service that is away fail at once, instead of
// keeping those who wait for them. A service is away when no connection to it is
// ready for a while; a connection whose other end does not answer, as that of a
// paused process or of a host that vanished, is closed within seconds.
//
// It decides when to give up and never what that means: a refused call has
// certainly not been executed, and says so.
package breaker

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services/rpc"
)

// patience is how long calls wait for a service that has just been lost.
const patience = time.Second

// Config describes the service that is called.
type Config struct {
	// Service is its name, for messages and metrics.
	Service string
	// Credentials are shown to it.
	Credentials credentials.TransportCredentials
	// Armed reports whether calls may be refused already; until then they wait.
	Armed func() bool
	// Repeatable reports whether a call of a method may be given up after it was
	// sent, because it changes nothing.
	Repeatable func(method string) bool
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Breaker watches over the connections to one service.
type Breaker struct {
	config  Config
	refused prometheus.Counter
	error   error       // of refused calls
	open    atomic.Bool // calls are refused
	suspect atomic.Bool // a connection has been closed because nobody answered

	mu    sync.Mutex
	calls map[*call]struct{} // under way
}

// New returns a Breaker that lets calls through.
func New(c Config) *Breaker {
	b := &Breaker{config: c, calls: map[*call]struct{}{}, error: rpc.Refusal(c.Service),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "portico_peer_refused_calls_total",
			Help: "Calls that were not made because the service was away.", ConstLabels: prometheus.Labels{"peer": c.Service}})}
	if c.Metrics != nil {
		c.Metrics.MustRegister(b.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portico_peer_up",
			Help: "1 when calls to the service are made, 0 when they are refused.", ConstLabels: prometheus.Labels{"peer": c.Service}},
			func() float64 {
				if b.open.Load() {
					return 0
				}
				return 1
			}))
	}
	return b
}

// Options are what a client of the service needs to be watched over.
func (b *Breaker) Options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(b.dial),
		grpc.WithPerRPCCredentials(sending{}),
	}
}

// States of a call.
const (
	waiting int32 = iota
	sent
	givenUp
)

// call is one that is under way.
type call struct {
	cancel     context.CancelCauseFunc
	state      atomic.Int32
	repeatable bool
}

type callKey struct{}

var errAway = errors.New("the service is away")

// Conn returns the connection with its calls watched over.
func (b *Breaker) Conn(conn *grpc.ClientConn) grpc.ClientConnInterface { return guarded{conn, b} }

// guarded is a connection whose calls are refused while the service is away; those
// that wait are given up when it turns out to be.
type guarded struct {
	*grpc.ClientConn
	breaker *Breaker
}

// Invoke implements grpc.ClientConnInterface.
func (g guarded) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	b := g.breaker
	if b.open.Load() {
		b.refused.Inc()
		return b.error
	}
	c := &call{repeatable: b.config.Repeatable(method)}
	ctx, c.cancel = context.WithCancelCause(context.WithValue(ctx, callKey{}, c))
	defer c.cancel(nil)
	b.add(c)
	err := g.ClientConn.Invoke(ctx, method, request, answer, options...)
	b.remove(c)
	if err != nil && errors.Is(context.Cause(ctx), errAway) {
		b.refused.Inc()
		return b.error
	}
	return err
}

func (b *Breaker) add(c *call) {
	b.mu.Lock()
	b.calls[c] = struct{}{}
	b.mu.Unlock()
	if b.open.Load() { // since it was looked at
		b.giveUp(c)
	}
}

func (b *Breaker) remove(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, c)
}

// giveUp ends a call unless it may have been executed.
func (b *Breaker) giveUp(c *call) {
	if c.state.CompareAndSwap(waiting, givenUp) || c.repeatable {
		c.cancel(errAway)
	}
}

// sending notes which calls are sent: gRPC asks for their credentials when it has
// chosen a connection.
type sending struct{}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (sending) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	c, ok := ctx.Value(callKey{}).(*call)
	if ok && !c.state.CompareAndSwap(waiting, sent) && c.state.Load() == givenUp {
		return nil, status.FromContextError(context.Canceled).Err()
	}
	return nil, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (sending) RequireTransportSecurity() bool { return true }

// Watch follows the state of the connection until ctx ends.
func (b *Breaker) Watch(ctx context.Context, conn *grpc.ClientConn) {
	var lost time.Time // when the service was last seen to be lost; zero while it is there
	for ctx.Err() == nil {
		state := conn.GetState()
		if state == connectivity.Ready {
			lost = time.Time{}
			b.suspect.Store(false)
			b.open.Store(false)
			conn.WaitForStateChange(ctx, state)
			continue
		}
		if lost.IsZero() {
			lost = time.Now()
		}
		if state == connectivity.Idle {
			conn.Connect()
		}
		left := patience - time.Since(lost)
		if b.config.Armed() && (left <= 0 || b.suspect.Load()) {
			b.away()
			left = time.Hour
		}
		wait, cancel := context.WithTimeout(ctx, max(left, patience/10))
		conn.WaitForStateChange(wait, state)
		cancel()
	}
}

// away refuses calls from now on, and gives up those that wait.
func (b *Breaker) away() {
	b.open.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.calls {
		b.giveUp(c)
	}
}

// dial opens a connection that is closed when the other end stops answering.
func (b *Breaker) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &watched{Conn: conn, closed: make(chan struct{})}
	go b.probe(c, address)
	return c, nil
}

// watched is a connection whose end can be waited for.
type watched struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *watched) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
