package store

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/swap"
)

// failure returns the Status for a failed read from etcd.
func failure(err error) *services.Status {
	if inTime(err) {
		return services.Unavailable("etcd is unavailable: %v", err)
	}
	return services.Timeout("etcd did not respond in time: %v", err)
}

// writeFailure returns the Status for a failed swap, which was not applied unless the
// error is OutcomeUnknown.
func writeFailure(err error) *services.Status {
	var s *services.Status
	var full *etcd.NoSpace
	switch {
	case errors.As(err, &s):
		return s
	case errors.As(err, &full):
		return services.InsufficientStorage("%v", full)
	case swap.TooLarge(err):
		return services.TooLarge("Request entity too large: the object is larger than etcd accepts")
	case errors.Is(err, rpctypes.ErrNoSpace):
		return services.InsufficientStorage("etcd has reached its space quota and accepts only deletions until space has been freed")
	}
	return services.Unavailable("etcd is unavailable, and nothing was written: %v", err)
}

// notDone returns the Unavailable (503) of a write that was not applied and cannot be
// applied later.
func notDone(key resource.Key) *services.Status {
	return services.Unavailable("%s: etcd has not responded, and nothing was written", key)
}

// inTime reports whether the error is not a timeout or cancellation of the request.
func inTime(err error) bool {
	for _, late := range []error{
		context.DeadlineExceeded, context.Canceled,
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex,
	} {
		if errors.Is(err, late) {
			return false
		}
	}
	code := status.Code(err)
	return code != codes.DeadlineExceeded && code != codes.Canceled
}

func notFound(key resource.Key) *services.Status {
	return services.NotFound(key.Group, key.Resource, key.Name)
}

func mismatch(key resource.Key, what, want, is string) *services.Status {
	return services.Conflict(key.Group, key.Resource, key.Name,
		fmt.Sprintf("Precondition failed: %s in precondition: %s, %s in object meta: %s", what, want, what, is))
}
