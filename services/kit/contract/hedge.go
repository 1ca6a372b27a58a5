package contract

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// hedgeAfter is how long a call waits for its answer before it is also made to
	// another replica: much longer than most answers take, and much shorter than the
	// breaker needs to give up a replica that is frozen.
	hedgeAfter = 300 * time.Millisecond
	// maxHedges is how many times it is made at most.
	maxHedges = 3
)

// hedged makes a client whose calls change nothing. A call without an answer is repeated
// while the first one goes on, and the first answer counts. The balancer sends it to the
// replica with the fewest calls under way, which is not the one that does not answer.
func hedged[T any](client func(grpc.ClientConnInterface) T) func(grpc.ClientConnInterface) T {
	return func(conn grpc.ClientConnInterface) T { return client(hedging{conn}) }
}

// hedging is a connection whose calls are hedged.
type hedging struct{ grpc.ClientConnInterface }

// Invoke implements grpc.ClientConnInterface. Options that write, such as grpc.Peer, are
// not supported.
func (h hedging) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	into, ok := answer.(proto.Message)
	if !ok {
		return h.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		answer proto.Message
		err    error
	}
	results := make(chan result, maxHedges)
	call := func() {
		r := result{answer: into.ProtoReflect().New().Interface()}
		r.err = h.ClientConnInterface.Invoke(ctx, method, request, r.answer, options...)
		results <- r
	}
	go call()
	timer := time.NewTimer(hedgeAfter)
	defer timer.Stop()
	for made, failed := 1, 0; ; {
		select {
		case <-timer.C:
			made++
			go call()
			if made < maxHedges {
				timer.Reset(hedgeAfter)
			}
		case r := <-results:
			if r.err == nil {
				proto.Merge(into, r.answer)
				return nil
			}
			// A replica that is away says nothing about what the others will answer.
			if failed++; failed == made || status.Code(r.err) != codes.Unavailable {
				return r.err
			}
		}
	}
}
