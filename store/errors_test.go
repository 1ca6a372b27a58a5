package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
)

func TestEveryFailureOfEtcdHasAStatus(t *testing.T) {
	for _, c := range []struct {
		err         error
		read, write string
	}{
		{rpctypes.ErrRequestTooLarge, services.ReasonServiceUnavailable, services.ReasonRequestEntityTooLarge},
		{status.Error(codes.ResourceExhausted, "trying to send message larger than max (3 vs. 2)"), services.ReasonServiceUnavailable, services.ReasonRequestEntityTooLarge},
		{rpctypes.ErrNoSpace, services.ReasonServiceUnavailable, services.ReasonInsufficientStorage},
		{&etcd.NoSpace{Reason: "the disk is full"}, services.ReasonServiceUnavailable, services.ReasonInsufficientStorage},
		{rpctypes.ErrNoLeader, services.ReasonServiceUnavailable, services.ReasonServiceUnavailable},
		{status.Error(codes.Unavailable, "connection refused"), services.ReasonServiceUnavailable, services.ReasonServiceUnavailable},
		{rpctypes.ErrTimeoutDueToLeaderFail, services.ReasonTimeout, services.ReasonServiceUnavailable},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), services.ReasonTimeout, services.ReasonServiceUnavailable},
		{services.OutcomeUnknown("lost"), services.ReasonServiceUnavailable, services.ReasonTimeout},
	} {
		if got := failure(c.err); got.Reason != c.read {
			t.Errorf("%v becomes %s for a read, want %s", c.err, got.Reason, c.read)
		}
		if got := writeFailure(c.err); got.Reason != c.write {
			t.Errorf("%v becomes %s for a write, want %s", c.err, got.Reason, c.write)
		}
	}
}

func TestACancelledWriteIsNotDone(t *testing.T) {
	s := replica(t, openEtcd(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, services.CreateRequest{Key: pod("a"), Content: content("a", "0")})
	if !services.IsReason(err, services.ReasonServiceUnavailable) || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("a cancelled write: %v", err)
	}
	create(t, s, "a")
}
