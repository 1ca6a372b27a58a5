package rpc

import (
	"cmp"
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

const (
	// settleWithin is how long the client asks what became of a write whose answer is
	// lost. It is more than a store takes to find out.
	settleWithin = 8 * time.Second
	// askWithin bounds one such question, so that a replica that does not answer is
	// not waited for until the end. Asking twice does no harm.
	askWithin = 3 * time.Second
	askWait   = 100 * time.Millisecond
)

// write makes one write. When its answer is lost, the client asks the store, which
// may be another replica, what became of it.
func (c *storeClient) write(ctx context.Context, key resource.Key, a services.Attempt,
	call func(context.Context, *pb.Attempt, grpc.CallOption) (*pb.Object, error),
) (services.Object, error) {
	if !a.Repeated {
		a.ID = cmp.Or(a.ID, services.NewWriteID())
		a.Since = cmp.Or(a.Since, c.seen.Load())
	}
	var sent peer.Peer
	m, err := call(ctx, attemptOut(a), grpc.Peer(&sent))
	if err == nil || sent.Addr == nil || !lost(err) {
		return c.object(ctx, key, m, err)
	}
	cause := err
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	a.Repeated = true
	for {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		m, err := call(asking, attemptOut(a), grpc.Peer(&sent))
		cancel()
		// A question that was not asked is no answer, although it is one to a first call.
		if err == nil || !Refused(err) && (!lost(err) || !away(err)) {
			return c.object(ctx, key, m, err)
		}
		select {
		case <-time.After(askWait):
		case <-ctx.Done():
			return services.Object{}, services.OutcomeUnknown("store: %s; then: %s", status.Convert(cause).Message(), status.Convert(err).Message())
		}
	}
}

// lost reports whether a call has failed without an answer of the implementation, so
// that it may have been done.
func lost(err error) bool {
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if _, ok := detail.(*pb.Status); ok {
			return false
		}
	}
	switch s.Code() { // of what is refused before it begins
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return false
	case codes.ResourceExhausted:
		return !strings.Contains(s.Message(), "larger than max")
	}
	return true
}

// away reports whether the store may be reached when it is called again.
func away(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Canceled
}

// see notes a revision that the store has answered with.
func (c *storeClient) see(revision int64) {
	for seen := c.seen.Load(); revision > seen && !c.seen.CompareAndSwap(seen, revision); {
		seen = c.seen.Load()
	}
}

func attemptOut(a services.Attempt) *pb.Attempt {
	return &pb.Attempt{Id: a.ID, Repeated: a.Repeated, Since: a.Since}
}

func attemptIn(m *pb.Attempt) services.Attempt {
	return services.Attempt{ID: m.GetId(), Repeated: m.GetRepeated(), Since: m.GetSince()}
}
