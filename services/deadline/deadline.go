// Package deadline decides whose deadline has ended a call: that of the request for which it is made, or the
// call's own. A client chooses the former, by its timeout, by sending slowly, or by leaving. So whoever would go
// on without an answer (failurePolicy Ignore, no opinion of a webhook, images that are allowed by default) asks
// this package first: a check that the client's deadline has cut is a Timeout, whatever the policy says.
package deadline

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/portico-platform/portico/services"
)

// Ended returns the Timeout (504) of a request that has ended, by its deadline or because its caller has left;
// nil otherwise. A deadline that has passed counts, although the context may not say so yet: a connection to be
// opened fails by the same deadline, and may be first.
func Ended(ctx context.Context) error {
	until, bounded := ctx.Deadline()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return services.Timeout("the request was canceled by its caller")
	case ctx.Err() != nil, bounded && !time.Now().Before(until):
		return services.Timeout("%v", context.DeadlineExceeded)
	}
	return nil
}

// call is what the context of a call has to say.
type call struct {
	request context.Context
	own     bool // the call has all of its own time
}

type callKey struct{}

// Within returns the context of a call that may take its own time, and no more than the request has. most bounds
// it further for the sake of the request's other calls; 0 is no bound.
func Within(request context.Context, own, most time.Duration) (context.Context, context.CancelFunc) {
	within := own
	if until, bounded := request.Deadline(); bounded {
		within = min(within, time.Until(until))
	}
	if most > 0 {
		within = min(within, most)
	}
	return context.WithTimeout(context.WithValue(request, callKey{}, call{request, within == own}), within)
}

// Cut returns the Timeout (504) for the error of a call if the request has cut the call: it has ended, or it has
// left the call less than its own time, which the call has used up. It returns nil for any other error, and
// without one. ctx is that of Within.
func Cut(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	of, known := ctx.Value(callKey{}).(call)
	if !known {
		return Ended(ctx)
	}
	if ended := Ended(of.request); ended != nil {
		return ended
	}
	if canceled := errors.Is(ctx.Err(), context.Canceled); canceled || !of.own && (Ended(ctx) != nil || late(err)) {
		return services.Timeout("the request left a call less than its timeout, and it was not answered in time")
	}
	return nil
}

// Full reports whether the call of a context has all of its own time: if it is not answered, who was called is
// to blame, and not the request.
func Full(ctx context.Context) bool {
	of, _ := ctx.Value(callKey{}).(call)
	return of.own
}

// late reports whether an error says that there was no time for an answer. The side that was called may notice
// first.
func late(err error) bool {
	var network net.Error
	var status *services.Status
	switch {
	case errors.As(err, &status):
		return status.Code == http.StatusGatewayTimeout
	case errors.As(err, &network):
		return network.Timeout()
	}
	return errors.Is(err, context.DeadlineExceeded)
}
