package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/etcd"
)

func TestEveryFailureOfEtcdHasAStatus(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason string
	}{
		{rpctypes.ErrRequestTooLarge, services.ReasonRequestEntityTooLarge},
		{status.Error(codes.ResourceExhausted, "trying to send message larger than max (3 vs. 2)"), services.ReasonRequestEntityTooLarge},
		{rpctypes.ErrNoSpace, services.ReasonInsufficientStorage},
		{&etcd.NoSpace{Reason: "the disk is full"}, services.ReasonInsufficientStorage},
		{rpctypes.ErrNoLeader, services.ReasonServiceUnavailable},
		{status.Error(codes.Unavailable, "connection refused"), services.ReasonServiceUnavailable},
		{errors.New("anything else"), services.ReasonServiceUnavailable},
		{rpctypes.ErrTimeoutDueToLeaderFail, services.ReasonTimeout},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), services.ReasonTimeout},
		{status.Error(codes.Canceled, "context canceled"), services.ReasonTimeout},
	} {
		if got := failure(c.err); got.Reason != c.reason {
			t.Errorf("%v becomes %s, want %s", c.err, got.Reason, c.reason)
		}
	}
}

func TestACancelledWriteIsNotCertain(t *testing.T) {
	s := replica(t, openEtcd(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, services.CreateRequest{Key: pod("a"), Content: content("a", "0")})
	if !services.IsReason(err, services.ReasonTimeout) || !strings.Contains(err.Error(), "outcome is not known") {
		t.Errorf("a cancelled write: %v", err)
	}
}
