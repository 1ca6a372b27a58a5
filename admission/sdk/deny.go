package sdk

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/portico-platform/portico/services"
)

// Cause is one reason of a refusal, usually one per invalid field.
type Cause = services.StatusCause

// Deny returns the error that refuses a request. The code is an HTTP status from 400 to 499;
// any other becomes 403. The reason is one of the API's, such as Forbidden or Invalid, and
// may be empty. The client sees the message and the causes.
func Deny(code int, reason, message string, causes ...Cause) error {
	if code < http.StatusBadRequest || code >= http.StatusInternalServerError {
		code = http.StatusForbidden
	}
	if reason == "" {
		reason = services.ReasonFor(int32(code))
	}
	s := &services.Status{Code: int32(code), Reason: reason, Message: message}
	if len(causes) > 0 {
		s.Details = &services.StatusDetails{Causes: causes}
	}
	return s
}

// Forbid returns the error that refuses the request with 403 and names the object.
func (r *Review) Forbid(format string, args ...any) error {
	return services.Forbidden(r.Group, r.Resource, r.Name, fmt.Sprintf(format, args...))
}

// Invalid returns the error that refuses the request with 422 and names every invalid
// field.
func (r *Review) Invalid(causes ...Cause) error {
	return services.Invalid(r.Group, r.Kind, r.Name, causes)
}

// InvalidField returns the cause for one invalid field, for Invalid. The path is as in
// spec.containers[0].image.
func InvalidField(path, format string, args ...any) Cause {
	return Cause{Reason: services.CauseInvalid, Field: path, Message: fmt.Sprintf("Invalid value: "+format, args...)}
}

// Retry returns the error that refuses the request with 429 and asks the client to try again
// after some seconds.
func (r *Review) Retry(seconds int, format string, args ...any) error {
	s := services.Forbidden(r.Group, r.Resource, r.Name, fmt.Sprintf(format, args...))
	s.Code, s.Reason, s.Details.RetryAfterSeconds = http.StatusTooManyRequests, services.ReasonTooManyRequests, int32(seconds)
	return s
}

// refusal returns the Status of an error that refuses a request, nil for any other error.
func refusal(err error) *services.Status {
	var s *services.Status
	if errors.As(err, &s) && s.Code >= http.StatusBadRequest && s.Code < http.StatusInternalServerError {
		return s
	}
	return nil
}
