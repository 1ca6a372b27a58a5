package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Status is the one error of the suite: the API's Status object (section
// "Errors"). Services return it, the transport keeps it whole, and the front door
// renders it once.
type Status struct {
	Code    int32  // HTTP status code
	Reason  string // machine-readable, one of the Reason constants
	Message string // for humans
	Details *StatusDetails
}

// StatusDetails says more about the object and the fields that a Status is about.
type StatusDetails struct {
	Name              string // of the object
	Group             string // of the resource type
	Kind              string // the resource (plural) or, for Invalid, the kind
	UID               string
	Causes            []StatusCause
	RetryAfterSeconds int32
}

// StatusCause is one of several reasons, usually one per offending field.
type StatusCause struct {
	Reason  string // for example FieldValueInvalid
	Message string
	Field   string // path of the field, as in spec.containers[0].name
}

// Reasons, as clients know them.
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

// Cause reasons, as clients know them.
const (
	CauseRequired     = "FieldValueRequired"
	CauseDuplicate    = "FieldValueDuplicate"
	CauseInvalid      = "FieldValueInvalid"
	CauseNotSupported = "FieldValueNotSupported"
	CauseForbidden    = "FieldValueForbidden"
	CauseTooLong      = "FieldValueTooLong"
	CauseTypeInvalid  = "FieldValueTypeInvalid"
	// CauseFieldManagerConflict is one field of an apply that another manager owns.
	CauseFieldManagerConflict = "FieldManagerConflict"
	// CauseTooLargeVersion tells clients that a resourceVersion lies in the future.
	CauseTooLargeVersion = "ResourceVersionTooLarge"
)

// Error returns the message.
func (s *Status) Error() string { return s.Message }

// AsStatus returns the Status in the chain of err; a passed deadline becomes a
// Timeout, any other error an InternalError with its text. AsStatus(nil) is nil.
func AsStatus(err error) *Status {
	if err == nil {
		return nil
	}
	var s *Status
	if errors.As(err, &s) {
		return s
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Timeout("%v", err)
	}
	return &Status{Code: http.StatusInternalServerError, Reason: ReasonInternalError, Message: "Internal error occurred: " + err.Error()}
}

// IsReason reports whether err is a Status with that reason.
func IsReason(err error, reason string) bool {
	var s *Status
	return errors.As(err, &s) && s.Reason == reason
}

// BadRequest is a 400 with a formatted message.
func BadRequest(format string, args ...any) *Status {
	return &Status{Code: http.StatusBadRequest, Reason: ReasonBadRequest, Message: fmt.Sprintf(format, args...)}
}

// Forbidden is a 403 about one object (name may be empty).
func Forbidden(group, resource, name, why string) *Status {
	message := fmt.Sprintf("%s is forbidden: %s", qualified(group, resource), why)
	if name != "" {
		message = fmt.Sprintf("%s %q is forbidden: %s", qualified(group, resource), name, why)
	}
	return &Status{Code: http.StatusForbidden, Reason: ReasonForbidden, Message: message,
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// Unauthorized is a 401; the message is the generic one when why is empty.
func Unauthorized(why string) *Status {
	if why == "" {
		why = "Unauthorized"
	}
	return &Status{Code: http.StatusUnauthorized, Reason: ReasonUnauthorized, Message: why}
}

// NotFound is a 404 about one object.
func NotFound(group, resource, name string) *Status {
	return &Status{Code: http.StatusNotFound, Reason: ReasonNotFound,
		Message: fmt.Sprintf("%s %q not found", qualified(group, resource), name),
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// AlreadyExists is a 409 for a create whose name is taken.
func AlreadyExists(group, resource, name string) *Status {
	return &Status{Code: http.StatusConflict, Reason: ReasonAlreadyExists,
		Message: fmt.Sprintf("%s %q already exists", qualified(group, resource), name),
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// Conflict is a 409 for a write whose precondition does not hold.
func Conflict(group, resource, name, why string) *Status {
	return &Status{Code: http.StatusConflict, Reason: ReasonConflict,
		Message: fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", qualified(group, resource), name, why),
		Details: &StatusDetails{Name: name, Group: group, Kind: resource}}
}

// ConflictModified is the Conflict of a compare-and-swap that lost.
func ConflictModified(group, resource, name string) *Status {
	return Conflict(group, resource, name, "the object has been modified; please apply your changes to the latest version and try again")
}

// Expired is a 410 for a version that history no longer holds.
func Expired(format string, args ...any) *Status {
	return &Status{Code: http.StatusGone, Reason: ReasonExpired, Message: fmt.Sprintf(format, args...)}
}

const (
	// maxCauses is the limit on the causes that one Status tells.
	maxCauses = 100
	// maxCauseBytes is the limit on their text, of which one is told in any case.
	maxCauseBytes = 256 << 10
)

// Invalid is a 422 that names every offending field: of more than a client can make use
// of, the first ones and how many more there are.
func Invalid(group, kind, name string, causes []StatusCause) *Status {
	var text strings.Builder
	told := 0
	for i, c := range causes {
		if i == maxCauses || i > 0 && text.Len()+len(c.Field)+len(c.Message) > maxCauseBytes {
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(c.Field + ": " + c.Message)
		told++
	}
	if more := len(causes) - told; more > 0 {
		fmt.Fprintf(&text, ", and %d more", more)
	}
	list := text.String()
	if len(causes) > 1 {
		list = "[" + list + "]"
	}
	causes = causes[:told:told]
	of := kind
	if group != "" {
		of = kind + "." + group
	}
	return &Status{Code: http.StatusUnprocessableEntity, Reason: ReasonInvalid,
		Message: fmt.Sprintf("%s %q is invalid: %s", of, name, list),
		Details: &StatusDetails{Name: name, Group: group, Kind: kind, Causes: causes}}
}

// TooLarge is a 413.
func TooLarge(format string, args ...any) *Status {
	return &Status{Code: http.StatusRequestEntityTooLarge, Reason: ReasonRequestEntityTooLarge, Message: fmt.Sprintf(format, args...)}
}

// FutureRevision is the 504 for a resourceVersion that this service has not reached yet.
func FutureRevision(wanted, current int64) *Status {
	return &Status{Code: http.StatusGatewayTimeout, Reason: ReasonTimeout,
		Message: fmt.Sprintf("Timeout: Too large resource version: %d, current: %d", wanted, current),
		Details: &StatusDetails{RetryAfterSeconds: 1, Causes: []StatusCause{{Reason: CauseTooLargeVersion, Message: "Too large resource version"}}}}
}

// Timeout is a 504: the request was not done in its time.
func Timeout(format string, args ...any) *Status {
	return &Status{Code: http.StatusGatewayTimeout, Reason: ReasonTimeout,
		Message: "Timeout: " + fmt.Sprintf(format, args...), Details: &StatusDetails{RetryAfterSeconds: 1}}
}

// OutcomeUnknown is the 504 of a write that may or may not have been applied. It has
// no RetryAfterSeconds: clients repeat requests that are answered with one, and this
// one must not be repeated blindly.
func OutcomeUnknown(format string, args ...any) *Status {
	return &Status{Code: http.StatusGatewayTimeout, Reason: ReasonTimeout,
		Message: "Timeout: the outcome of the write is not known: " + fmt.Sprintf(format, args...)}
}

// Unavailable is a 503: a service that this request needs cannot be reached now, and
// the request has had no effect. Clients repeat it.
func Unavailable(format string, args ...any) *Status {
	return &Status{Code: http.StatusServiceUnavailable, Reason: ReasonServiceUnavailable,
		Message: fmt.Sprintf(format, args...), Details: &StatusDetails{RetryAfterSeconds: 1}}
}

// InsufficientStorage is a 507: there is no room for what the request would store,
// and it has not been stored.
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
