package contract

import (
	"context"
	"sync"
	"sync/atomic"
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
	// One further call may be made for each hedgeShare calls, and maxBudget at a time, so that
	// a service that is only slow gets little more to do.
	hedgeShare, maxBudget = 10, 100
)

// hedging is a connection whose calls that change nothing are hedged: a call without an answer
// is repeated while the first one goes on, and the first answer counts. The balancer sends it
// to the replica with the fewest calls in flight, which is not the one that does not respond.
type hedging struct {
	grpc.ClientConnInterface
	// spent is how many hedgeShare-ths of further calls have been made beyond what calls have
	// earned since.
	spent *atomic.Int64
}

func hedged(conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	return hedging{conn, new(atomic.Int64)}
}

// earn counts a call.
func (h hedging) earn() {
	if spent := h.spent.Load(); spent > 0 {
		h.spent.CompareAndSwap(spent, spent-1) // a lost race earns too little
	}
}

// spend reports whether a further call may be made.
func (h hedging) spend() bool {
	if h.spent.Add(hedgeShare) > maxBudget*hedgeShare {
		h.spent.Add(-hedgeShare)
		return false
	}
	return true
}

// Invoke implements grpc.ClientConnInterface. Options that write, such as grpc.Peer, are
// not supported for calls that are hedged.
func (h hedging) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	into, ok := answer.(proto.Message)
	if !ok || !repeatable(method) {
		return h.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	}
	h.earn()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first, abandon := context.WithCancel(ctx)
	defer abandon()
	kind := into.ProtoReflect().Type() // of answer, which the first call writes
	further := &furtherCalls{abandonFirst: abandon, ended: make(chan struct{}, maxHedges)}
	further.mu.Lock()
	further.timer = time.AfterFunc(hedgeAfter, func() {
		further.add(h, func() (proto.Message, error) {
			message := kind.New().Interface()
			return message, h.ClientConnInterface.Invoke(ctx, method, request, message, options...)
		})
	})
	further.mu.Unlock()
	err := h.ClientConnInterface.Invoke(first, method, request, answer, options...)
	if err == nil {
		further.stop()
		return nil
	}
	won, message, other := further.result(err)
	if won && other == nil {
		proto.Reset(into)
		proto.Merge(into, message)
	}
	return other
}

// furtherCalls are the calls after the first one.
type furtherCalls struct {
	timer        *time.Timer
	abandonFirst context.CancelFunc
	ended        chan struct{} // receives a value for each call that has ended

	mu      sync.Mutex
	made    int
	stopped bool // no more are made
	done    bool // one of them has an answer: message or err
	message proto.Message
	err     error
}

// add makes a further call, and ends the first one if it has an answer.
func (f *furtherCalls) add(h hedging, call func() (proto.Message, error)) {
	f.mu.Lock()
	if f.stopped || !h.spend() {
		f.mu.Unlock()
		return
	}
	f.made++
	if f.made < maxHedges-1 {
		f.timer.Reset(hedgeAfter)
	}
	f.mu.Unlock()
	message, err := call()
	f.mu.Lock()
	// The error of an unavailable replica does not predict the responses of others.
	if !f.done && !silent(err) {
		f.done, f.message, f.err = true, message, err
		f.abandonFirst()
	}
	f.mu.Unlock()
	f.ended <- struct{}{}
}

// silent reports whether an error is no answer of a replica.
func silent(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.Canceled
}

// stop prevents further calls and returns how many were made.
func (f *furtherCalls) stop() int {
	f.timer.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	return f.made
}

// result returns the answer of a further call, after the first one has failed with err. If
// there is none, won is false and the error is err.
func (f *furtherCalls) result(err error) (won bool, message proto.Message, _ error) {
	made := f.stop()
	for ended := 0; ; ended++ {
		f.mu.Lock()
		won, message, other := f.done, f.message, f.err
		f.mu.Unlock()
		switch {
		case won:
			return true, message, other
		case !silent(err) || ended == made:
			return false, nil, err
		}
		<-f.ended
	}
}
