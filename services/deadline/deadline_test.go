package deadline

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

// timedOut is the error of a connection that was not opened in time.
var errTimedOut error = &net.OpError{Op: "dial", Err: timeoutError{}}

type timeoutError struct{}

func (timeoutError) Error() string { return "i/o timeout" }
func (timeoutError) Timeout() bool { return true }

// TestCut: a call that used up what the request left it was cut by the request, and one that used up its own
// time was not. An error that came in time is neither.
func TestCut(t *testing.T) {
	soon := func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Hour) }
	gone, leave := context.WithCancel(t.Context())
	leave()
	short, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	long, cancel := soon()
	defer cancel()
	refused := errors.New("connection refused")
	for name, x := range map[string]struct {
		request   context.Context
		own, most time.Duration
		err       error
		cut       bool
	}{
		"no error":                    {short, time.Hour, 0, nil, false},
		"the request has ended":       {short, time.Hour, 0, refused, true},
		"its caller has left":         {gone, time.Hour, 0, refused, true},
		"its own time":                {long, time.Nanosecond, 0, context.DeadlineExceeded, false},
		"a share of the request":      {long, time.Hour, time.Nanosecond, refused, true},
		"the other side notices":      {long, 2 * time.Hour, 0, services.Timeout("late"), true},
		"the connection notices":      {long, 2 * time.Hour, 0, errTimedOut, true},
		"an error in time":            {long, 2 * time.Hour, 0, refused, false},
		"the other side's own limits": {long, time.Minute, 0, services.Timeout("late"), false},
	} {
		ctx, cancel := Within(x.request, x.own, x.most)
		if x.own == time.Nanosecond || x.most == time.Nanosecond {
			<-ctx.Done()
		}
		cut := Cut(ctx, x.err)
		if (cut != nil) != x.cut || cut != nil && !services.IsReason(cut, services.ReasonTimeout) {
			t.Errorf("%s: %v", name, cut)
		}
		cancel()
	}
}

// TestEnded: a deadline that has passed counts, and a request without one goes on.
func TestEnded(t *testing.T) {
	if err := Ended(t.Context()); err != nil {
		t.Error(err)
	}
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if !services.IsReason(Ended(past), services.ReasonTimeout) {
		t.Error("a deadline that has passed")
	}
}
