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
	// settleTimeout bounds how long the client tries to determine the outcome of a write
	// whose response was lost. It is longer than a store takes to determine it.
	settleTimeout = 8 * time.Second
	// askTimeout bounds one such call, so that another replica is tried if one does not
	// respond. Repeating the call is harmless.
	askTimeout  = 3 * time.Second
	askInterval = 100 * time.Millisecond
	// sinceTimeout bounds the request of the revision before a write.
	sinceTimeout = time.Second
)

// write executes one write. If its response is lost, the client repeats the call with
// Repeated set, to the same or another replica, which returns the outcome.
func (c *storeClient) write(ctx context.Context, key resource.Key, a services.Attempt,
	call func(context.Context, *pb.Attempt, grpc.CallOption) (*pb.Object, error),
) (services.Object, error) {
	if !a.Repeated {
		a.ID = cmp.Or(a.ID, services.NewWriteID())
		if a.Since == 0 {
			a.Since = c.since(ctx, key.GroupResource)
		}
	}
	var sent peer.Peer
	m, err := call(ctx, attemptOut(a), grpc.Peer(&sent))
	if err == nil || sent.Addr == nil || !lost(err) {
		o, err := c.object(ctx, key, m, err)
		if err == nil {
			c.seen.SawNow(key.GroupResource, o.Revision)
		}
		return o, err
	}
	cause := err
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	a.Repeated = true
	for {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		m, err := call(asking, attemptOut(a), grpc.Peer(&sent))
		cancel()
		// A refused call reveals nothing about the first one, although its error looks like a response.
		if err == nil || !Refused(err) && (!lost(err) || !away(err)) {
			return c.object(ctx, key, m, err)
		}
		select {
		case <-time.After(askInterval):
		case <-ctx.Done():
			return services.Object{}, services.OutcomeUnknown("store: %s; then: %s", status.Convert(cause).Message(), status.Convert(err).Message())
		}
	}
}

// lost reports whether a call failed without a response of the implementation, so that it
// may have been executed.
func lost(err error) bool {
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if _, ok := detail.(*pb.Status); ok {
			return false
		}
	}
	switch s.Code() { // of calls that are refused before they are executed
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return false
	case codes.ResourceExhausted:
		return !strings.Contains(s.Message(), "larger than max")
	}
	return true
}

// away reports whether the call may succeed if it is retried.
func away(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Canceled
}

// since returns a revision before a write that is about to be sent. The store is asked for it if none is
// recent: the history since an older one may have been compacted, and then
// the outcome of a write whose response is lost could not be determined.
func (c *storeClient) since(ctx context.Context, gr resource.GroupResource) int64 {
	if revision, recent := c.seen.Newest(gr); recent {
		return revision
	}
	ctx, cancel := context.WithTimeout(ctx, sinceTimeout)
	defer cancel()
	_, _ = c.Revision(ctx, gr) // the write can do without
	revision, _ := c.seen.Newest(gr)
	return revision
}

func attemptOut(a services.Attempt) *pb.Attempt {
	return &pb.Attempt{Id: a.ID, Repeated: a.Repeated, Since: a.Since}
}

func attemptIn(m *pb.Attempt) services.Attempt {
	return services.Attempt{ID: m.GetId(), Repeated: m.GetRepeated(), Since: m.GetSince()}
}
