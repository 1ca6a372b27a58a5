package etcd

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// Sending knows whether a request has left this process.
type Sending struct{ seen, sent atomic.Bool }

// Never reports whether etcd has certainly seen nothing of a request that has failed:
// there was no connection to send it over.
func (s *Sending) Never() bool { return s.seen.Load() && !s.sent.Load() }

type sendingKey struct{}

// Track returns a context for one request, and what knows of its sending. Requests to
// an etcd in this process always count as sent.
func Track(ctx context.Context) (*Sending, context.Context) {
	s := new(Sending)
	return s, context.WithValue(ctx, sendingKey{}, s)
}

// tracker sees for Track what the connection to etcd does.
type tracker struct{}

// TagRPC implements stats.Handler.
func (tracker) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if s, ok := ctx.Value(sendingKey{}).(*Sending); ok {
		s.seen.Store(true)
	}
	return ctx
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
