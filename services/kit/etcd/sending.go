package etcd

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"

	"github.com/portico-platform/portico/services/kit/tracing"
)

// Sending records whether a request has left this process.
type Sending struct{ seen, sent atomic.Bool }

// Never reports whether a failed request was certainly not sent, because there was no
// connection.
func (s *Sending) Never() bool { return s.seen.Load() && !s.sent.Load() }

type sendingKey struct{}

// Track returns a context for one request, and the record of its sending. Requests to an
// etcd in this process always count as sent.
func Track(ctx context.Context) (*Sending, context.Context) {
	s := new(Sending)
	return s, context.WithValue(ctx, sendingKey{}, s)
}

// tracker is the stats handler that updates the records of Track and adds the trace of a
// request to etcd.
type tracker struct{}

// TagRPC implements stats.Handler.
func (tracker) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if s, ok := ctx.Value(sendingKey{}).(*Sending); ok {
		s.seen.Store(true)
	}
	return tracing.ToCall(ctx)
}

// HandleRPC implements stats.Handler.
func (tracker) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.OutHeader); !ok {
		return
	}
	if s, ok := ctx.Value(sendingKey{}).(*Sending); ok {
		s.sent.Store(true)
	}
}

// TagConn implements stats.Handler.
func (tracker) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (tracker) HandleConn(context.Context, stats.ConnStats) {}
