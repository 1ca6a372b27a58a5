// Package breaker is a circuit breaker: calls to an unavailable service fail at once. A
// service is unavailable when no connection to it has been ready for a second. A
// connection whose peer does not respond, such as a paused process or a lost host, is
// closed within seconds.
//
// A refused call was certainly not executed, and its error says so.
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

// reconnectWait is how long calls wait after the last connection was lost.
const reconnectWait = time.Second

// Config configures a Breaker.
type Config struct {
	// Service is the name of the service, for errors and metrics.
	Service string
	// Credentials are those of the connections.
	Credentials credentials.TransportCredentials
	// Armed reports whether calls may be refused; until then they wait.
	Armed func() bool
	// Repeatable reports whether calls of a method may be canceled after they were sent,
	// because they change nothing.
	Repeatable func(method string) bool
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Breaker monitors the connections to one service.
type Breaker struct {
	config  Config
	refused prometheus.Counter
	error   error       // of refused calls
	open    atomic.Bool // calls are refused
	suspect atomic.Bool // a connection was closed because its peer did not respond

	mu    sync.Mutex
	calls map[*call]struct{} // in flight
}

// New returns a closed Breaker: calls are made.
func New(c Config) *Breaker {
	b := &Breaker{config: c, calls: map[*call]struct{}{}, error: rpc.Refusal(c.Service),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "portico_peer_refused_calls_total",
			Help: "Calls that were not made because the service was unavailable.", ConstLabels: prometheus.Labels{"peer": c.Service}})}
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

// Options returns the dial options of a monitored client.
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

// call is a call in flight.
type call struct {
	cancel     context.CancelCauseFunc
	state      atomic.Int32
	repeatable bool
}

type callKey struct{}

var errAway = errors.New("the service is unavailable")

// Conn returns the connection with its calls guarded by the breaker.
func (b *Breaker) Conn(conn *grpc.ClientConn) grpc.ClientConnInterface { return guarded{conn, b} }

// guarded is a connection whose calls are refused while the service is unavailable.
// Waiting calls are canceled when it becomes unavailable.
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

// NewStream implements grpc.ClientConnInterface. A stream ends with its connection.
func (g guarded) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if g.breaker.open.Load() {
		g.breaker.refused.Inc()
		return nil, g.breaker.error
	}
	return g.ClientConn.NewStream(ctx, desc, method, options...)
}

func (b *Breaker) add(c *call) {
	b.mu.Lock()
	b.calls[c] = struct{}{}
	b.mu.Unlock()
	if b.open.Load() { // opened after the check in Invoke
		b.giveUp(c)
	}
}

func (b *Breaker) remove(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, c)
}

// giveUp cancels a call unless it may have been executed.
func (b *Breaker) giveUp(c *call) {
	if c.state.CompareAndSwap(waiting, givenUp) || c.repeatable {
		c.cancel(errAway)
	}
}

// sending records which calls are sent: gRPC requests per-call credentials after it has
// picked a connection.
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

// Watch monitors the state of the connection until ctx ends.
func (b *Breaker) Watch(ctx context.Context, conn *grpc.ClientConn) {
	var lost time.Time // when the connection was lost; zero while it is ready
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
		left := reconnectWait - time.Since(lost)
		if b.config.Armed() && (left <= 0 || b.suspect.Load()) {
			b.away()
			left = time.Hour
		}
		wait, cancel := context.WithTimeout(ctx, max(left, reconnectWait/10))
		conn.WaitForStateChange(wait, state)
		cancel()
	}
}

// away opens the breaker and cancels waiting calls.
func (b *Breaker) away() {
	b.open.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.calls {
		b.giveUp(c)
	}
}

// dial opens a connection that is closed when the peer stops responding.
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

// watched is a connection with a channel that is closed with it.
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
