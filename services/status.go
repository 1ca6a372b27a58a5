package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/portico-platform/portico/services/ledger"
)

// Status is the error type of the services: the API's Status object (section "Errors"). Services return it, the
// transport preserves it, and the front door writes it to the client.
type Status struct {
	Code    int32  // HTTP status code
	Reason  string // machine-readable, one of the Reason constants
	Message string // for humans
	Details *StatusDetails
}

// StatusDetails describes the object and the fields that a Status is about.
type StatusDetails struct {
	Name              string // of the object
	Group             string // of the resource type
	Kind              string // the resource (plural) or, for Invalid, the kind
	UID               string
	Causes            []StatusCause
	RetryAfterSeconds int32
}

// StatusCause is one of several causes, usually one per invalid field.
type StatusCause struct {
	Reason  string // for example FieldValueInvalid
	Message string
	Field   string // path of the field, as in spec.containers[0].name
}

// Reasons, as defined by the API.
const (
	ReasonBadRequest            = "BadRequest"
	ReasonUnauthorized          = "Unauthorized"
	ReasonForbidden             = "Forbidden"
	ReasonNotFound              = "NotFound"
	ReasonMethodNotAllowed      = "MethodNotAllowed"
	ReasonNotAcceptable         = "NotAcceptable"
	ReasonAlreadyExists         = "AlreadyExists"
	ReasonConflict              = "Conflict"
	ReasonGone                  = "Gone"
	ReasonExpired               = "Expired"
	ReasonInvalid               = "Invalid"
	ReasonRequestEntityTooLarge = "RequestEntityTooLarge"
	ReasonUnsupportedMediaType  = "UnsupportedMediaType"
	ReasonTooManyRequests       = "TooManyRequests"
	ReasonServerTimeout         = "ServerTimeout"
	ReasonTimeout               = "Timeout"
	ReasonInternalError         = "InternalError"
	ReasonServiceUnavailable    = "ServiceUnavailable"
	ReasonInsufficientStorage   = "InsufficientStorage"
)

// ReasonFor returns the reason of a refusal that names only its HTTP status code.
func ReasonFor(code int32) string {
	switch code {
	case http.StatusUnauthorized:
		return ReasonUnauthorized
	case http.StatusForbidden:
		return ReasonForbidden
	case http.StatusNotFound:
		return ReasonNotFound
	case http.StatusConflict:
		return ReasonConflict
	case http.StatusRequestEntityTooLarge:
		return ReasonRequestEntityTooLarge
	case http.StatusUnprocessableEntity:
		return ReasonInvalid
	case http.StatusTooManyRequests:
		return ReasonTooManyRequests
	}
	if code >= http.StatusInternalServerError {
		return ReasonInternalError
	}
	return ReasonBadRequest
}

// Cause reasons, as defined by the API.
const (
	CauseRequired     = "FieldValueRequired"
	CauseDuplicate    = "FieldValueDuplicate"
	CauseInvalid      = "FieldValueInvalid"
	CauseNotSupported = "FieldValueNotSupported"
	CauseForbidden    = "FieldValueForbidden"
	CauseTooLong      = "FieldValueTooLong"
	CauseTypeInvalid  = "FieldValueTypeInvalid"
	// CauseFieldManagerConflict is a field of an apply that another manager owns.
	CauseFieldManagerConflict = "FieldManagerConflict"
	// CauseTooLargeVersion tells clients that a resourceVersion is in the future.
	CauseTooLargeVersion = "ResourceVersionTooLarge"
)

// Error returns the message.
func (s *Status) Error() string { return s.Message }

// AsStatus returns the Status in the chain of err. A used up share of memory becomes TooManyRequests, an exceeded
// deadline, and the end of a request whose caller has left, a Timeout, any other error an InternalError with its text.
// AsStatus(nil) is nil.
func AsStatus(err error) *Status {
	if err == nil {
		return nil
	}
	var s *Status
	if errors.As(err, &s) {
		return s
	}
	var full *ledger.FullError
	if errors.As(err, &full) {
		return TooManyRequests("%v", err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return Timeout("%v", err)
	}
	return &Status{Code: http.StatusInternalServerError, Reason: ReasonInternalError, Message: "Internal error occurred: " + err.Error()}
}

// IsReason reports whether err is a Status with that reason.
func IsReason(err error, reason string) bool {
	var s *Status
	return errors.As(err, &s) && s.Reason == reason
}

// BadRequest returns a 400 with a formatted message.
func BadRequest(format string, args ...any) *Status {
	return &Status{Code: http.StatusBadRequest, Reason: ReasonBadRequest, Message: fmt.Sprintf(format, args...)}
}

// Forbidden returns a 403 about one object (name may be empty).
func Forbidden(group, resource, name, why string) *Status {
	message := fmt.Sprintf("%s is forbidden: %s", qualified(group, resource), why)
	if name != "" {
		message = fmt.Sprintf("%s %q is forbidden: %s", qualified(group, resource), name, why)
	}
	return &Status{Code: http.StatusForbidden, Reason: ReasonForbidden, Message: message,
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// Unauthorized returns a 401; the message is the generic one if why is empty.
func Unauthorized(why string) *Status {
	if why == "" {
		why = "Unauthorized"
	}
	return &Status{Code: http.StatusUnauthorized, Reason: ReasonUnauthorized, Message: why}
}

// NotFound returns a 404 about one object.
func NotFound(group, resource, name string) *Status {
	return &Status{Code: http.StatusNotFound, Reason: ReasonNotFound,
		Message: fmt.Sprintf("%s %q not found", qualified(group, resource), name),
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// AlreadyExists returns a 409 for a create whose name is taken.
func AlreadyExists(group, resource, name string) *Status {
	return &Status{Code: http.StatusConflict, Reason: ReasonAlreadyExists,
		Message: fmt.Sprintf("%s %q already exists", qualified(group, resource), name),
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// Conflict returns a 409 for a write whose precondition failed.
func Conflict(group, resource, name, why string) *Status {
	return &Status{Code: http.StatusConflict, Reason: ReasonConflict,
		Message: fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", qualified(group, resource), name, why),
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// ConflictModified returns the Conflict of a compare-and-swap that lost.
func ConflictModified(group, resource, name string) *Status {
	return Conflict(group, resource, name, "the object has been modified; please apply your changes to the latest version and try again")
}

// Expired returns a 410 for a revision that history no longer has.
func Expired(format string, args ...any) *Status {
	return &Status{Code: http.StatusGone, Reason: ReasonExpired, Message: fmt.Sprintf(format, args...)}
}

const (
	// maxCauses is the maximum number of causes of one Status.
	maxCauses = 100
	// maxCauseBytes is the limit on their total text. The first cause is included in
	// any case.
	maxCauseBytes = 256 << 10
)

// Invalid returns a 422 that names every invalid field, or the first ones and the
// number of the others if they exceed the limits.
func Invalid(group, kind, name string, causes []StatusCause) *Status {
	var text strings.Builder
	listed := 0
	for i, c := range causes {
		if i == maxCauses || i > 0 && text.Len()+len(c.Field)+len(c.Message) > maxCauseBytes {
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(c.Field + ": " + c.Message)
		listed++
	}
	if more := len(causes) - listed; more > 0 {
		fmt.Fprintf(&text, ", and %d more", more)
	}
	list := text.String()
	if len(causes) > 1 {
		list = "[" + list + "]"
	}
	causes = causes[:listed:listed]
	of := kind
	if group != "" {
		of = kind + "." + group
	}
	return &Status{Code: http.StatusUnprocessableEntity, Reason: ReasonInvalid,
		Message: fmt.Sprintf("%s %q is invalid: %s", of, name, list),
		Details: &StatusDetails{Name: name, Group: group, Kind: kind, Causes: causes}}
}

// TooLarge returns a 413.
func TooLarge(format string, args ...any) *Status {
	return &Status{Code: http.StatusRequestEntityTooLarge, Reason: ReasonRequestEntityTooLarge, Message: fmt.Sprintf(format, args...)}
}

// TooManyRequests returns a 429: what the client may use at a time is used up. It may retry after a second.
func TooManyRequests(format string, args ...any) *Status {
	return &Status{Code: http.StatusTooManyRequests, Reason: ReasonTooManyRequests,
		Message: fmt.Sprintf(format, args...), Details: &StatusDetails{RetryAfterSeconds: 1}}
}

// FutureRevision returns the 504 for a resourceVersion that this service has not
// reached yet.
func FutureRevision(requested, current int64) *Status {
	return &Status{Code: http.StatusGatewayTimeout, Reason: ReasonTimeout,
		Message: fmt.Sprintf("Timeout: Too large resource version: %d, current: %d", requested, current),
		Details: &StatusDetails{RetryAfterSeconds: 1, Causes: []StatusCause{{Reason: CauseTooLargeVersion, Message: "Too large resource version"}}}}
}

// Timeout returns a 504: the request was not completed in time.
func Timeout(format string, args ...any) *Status {
	return &Status{Code: http.StatusGatewayTimeout, Reason: ReasonTimeout,
		Message: "Timeout: " + fmt.Sprintf(format, args...), Details: &StatusDetails{RetryAfterSeconds: 1}}
}

// OutcomeUnknown returns the 504 of a write that may or may not have been applied. It
// has no RetryAfterSeconds, which would make clients retry: this write must not be
// repeated blindly.
func OutcomeUnknown(format string, args ...any) *Status {
	return &Status{Code: http.StatusGatewayTimeout, Reason: ReasonTimeout,
		Message: "Timeout: the outcome of the write is not known: " + fmt.Sprintf(format, args...)}
}

// Unavailable returns a 503: a service that the request needs is unreachable, and the
// request has had no effect. Clients may retry.
func Unavailable(format string, args ...any) *Status {
	return &Status{Code: http.StatusServiceUnavailable, Reason: ReasonServiceUnavailable,
		Message: fmt.Sprintf(format, args...), Details: &StatusDetails{RetryAfterSeconds: 1}}
}

// InsufficientStorage returns a 507: there is no space for the write, and it has not
// been stored.
func InsufficientStorage(format string, args ...any) *Status {
	return &Status{Code: http.StatusInsufficientStorage, Reason: ReasonInsufficientStorage, Message: fmt.Sprintf(format, args...)}
}

func qualified(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

var _ error = (*Status)(nil)
