// Package limit names the limits on the work of one request, and marks errors with the
// limit that ended a request, so that they can be counted. It decides no limit and
// changes no response. It serves "Errors" of the specification.
package limit

import (
	"errors"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Limit is a limit that a request has exceeded.
type Limit string

// The limits. The names are label values of metrics.
const (
	Body         Limit = "body"         // bytes or values of a request
	Query        Limit = "query"        // parameters and selectors of a request
	Depth        Limit = "depth"        // of an object or patch
	Defaults     Limit = "defaults"     // bytes that defaults add
	Time         Limit = "time"         // of a request, detected during a walk over an object
	Operations   Limit = "operations"   // of a JSON patch
	Patch        Limit = "patch"        // work of a patch
	Patched      Limit = "patched"      // bytes of a patched object
	Fields       Limit = "fields"       // siblings in an applied object
	Impersonated Limit = "impersonated" // groups or extra values of an impersonated user
)

// All returns all limits.
func All() []Limit {
	return []Limit{Body, Query, Depth, Defaults, Time, Operations, Patch, Patched, Fields, Impersonated}
}

// exceeded is a Status with the limit that caused it.
type exceeded struct {
	*services.Status
	limit Limit
}

// Unwrap returns the Status.
func (e *exceeded) Unwrap() error { return e.Status }

// Exceeded returns a Status as an error that Of recognizes.
func Exceeded(l Limit, s *services.Status) error { return &exceeded{s, l} }

// Deep returns the Status of an error, marked with Depth if the error is a
// tree.DepthError.
func Deep(err error, s *services.Status) error {
	var deep tree.DepthError
	if errors.As(err, &deep) {
		return Exceeded(Depth, s)
	}
	return s
}

// Of returns the limit of an error; false if it has none.
func Of(err error) (Limit, bool) {
	var e *exceeded
	if errors.As(err, &e) {
		return e.limit, true
	}
	return "", false
}
