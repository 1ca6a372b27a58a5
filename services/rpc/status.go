package rpc

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

// errorOut returns the gRPC error for an error of the implementation: the whole Status is a
// detail; the gRPC code is informative only.
func errorOut(err error) error {
	s := services.AsStatus(err)
	plain := status.New(codeOf(s), s.Message)
	if detailed, err := plain.WithDetails(statusOut(s)); err == nil {
		return detailed.Err()
	}
	return plain.Err()
}

// errorIn returns the error for a gRPC error: the Status of the implementation, or else one about the
// transport. If the caller's context has ended, it is the context's error, as in a direct call.
func errorIn(ctx context.Context, peer string, err error) error {
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if m, ok := detail.(*pb.Status); ok {
			return statusIn(m)
		}
	}
	switch s.Code() {
	case codes.Canceled:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return services.Unavailable("%s canceled the call: %s", peer, s.Message())
	case codes.DeadlineExceeded:
		return services.Timeout("%s has not responded in time: %s", peer, s.Message())
	case codes.Unavailable:
		return services.Unavailable("%s cannot be reached: %s", peer, s.Message())
	}
	return faultf("%s: %s", peer, s.Message())
}

// faultf returns the Status for a peer that violated its contract.
func faultf(format string, args ...any) *services.Status {
	return services.AsStatus(fmt.Errorf(format, args...))
}

func statusOut(s *services.Status) *pb.Status {
	m := &pb.Status{Code: s.Code, Reason: s.Reason, Message: s.Message}
	if d := s.Details; d != nil {
		m.Details = &pb.StatusDetails{
			Name: d.Name, Group: d.Group, Kind: d.Kind, Uid: d.UID, RetryAfterSeconds: d.RetryAfterSeconds,
			Causes: each(d.Causes, func(c services.StatusCause) *pb.StatusCause {
				return &pb.StatusCause{Reason: c.Reason, Message: c.Message, Field: c.Field}
			}),
		}
	}
	return m
}

func statusIn(m *pb.Status) *services.Status {
	s := &services.Status{Code: m.GetCode(), Reason: m.GetReason(), Message: m.GetMessage()}
	if d := m.GetDetails(); d != nil {
		s.Details = &services.StatusDetails{
			Name: d.GetName(), Group: d.GetGroup(), Kind: d.GetKind(), UID: d.GetUid(), RetryAfterSeconds: d.GetRetryAfterSeconds(),
			Causes: each(d.GetCauses(), func(c *pb.StatusCause) services.StatusCause {
				return services.StatusCause{Reason: c.GetReason(), Message: c.GetMessage(), Field: c.GetField()}
			}),
		}
	}
	return s
}

func codeOf(s *services.Status) codes.Code {
	switch s.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusConflict:
		return codes.Aborted
	case http.StatusGone:
		return codes.OutOfRange
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	case http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	}
	return codes.Internal
}
