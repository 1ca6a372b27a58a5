package lossy

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// Streams are the streams of a method of a gRPC client, which can hang as if their server did: the
// connection lives, and nothing arrives. Other calls are not affected.
type Streams struct {
	// Method is the end of the full name of the method.
	Method string

	mu     sync.Mutex
	opened int // so far
	hung   int // the streams up to this number hang
}

// Option returns the option of the client's connection.
func (s *Streams) Option() grpc.DialOption { return grpc.WithStatsHandler(s) }

// Hang lets the open streams hang, and as many of those that are opened later.
func (s *Streams) Hang(next int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung = s.opened + next
}

// Left returns how many streams are still to be opened that hang.
func (s *Streams) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.hung-s.opened)
}

type numberKey struct{}

// TagRPC implements stats.Handler. It numbers the streams.
func (s *Streams) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if !strings.HasSuffix(info.FullMethodName, s.Method) {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return context.WithValue(ctx, numberKey{}, s.opened)
}

// HandleRPC implements stats.Handler. The client calls it before it delivers a message.
func (s *Streams) HandleRPC(ctx context.Context, event stats.RPCStats) {
	number, ok := ctx.Value(numberKey{}).(int)
	if _, in := event.(*stats.InPayload); !ok || !in {
		return
	}
	s.mu.Lock()
	hangs := number <= s.hung
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
}

// TagConn implements stats.Handler.
func (s *Streams) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (s *Streams) HandleConn(context.Context, stats.ConnStats) {}
