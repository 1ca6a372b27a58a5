package rpc

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
)

// Refusal returns the error of a call that was not made because the service is
// unavailable. It contains the Status, so that the caller knows that a retry is safe.
func Refusal(service string) error {
	s := services.Unavailable("%s cannot be reached", service)
	plain := status.New(codes.Unavailable, s.Message)
	detailed, err := plain.WithDetails(statusOut(s))
	if err != nil {
		return &refused{plain.Err()}
	}
	return &refused{detailed.Err()}
}

// refused is the error of a call that was not made.
type refused struct{ error }

// GRPCStatus returns the status of the error, as gRPC's own errors do.
func (r *refused) GRPCStatus() *status.Status { return status.Convert(r.error) }

// Refused reports whether err is a Refusal. It says nothing about earlier calls of the same write.
func Refused(err error) bool {
	var r *refused
	return errors.As(err, &r)
}
