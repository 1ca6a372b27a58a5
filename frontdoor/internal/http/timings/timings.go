// Package timings is the stage that answers a request with the time of each of its stages, in
// the header Server-Timing, if its user may know them.
package timings

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// Timings holds the dependencies of the stage.
type Timings struct {
	Tracer *tracing.Tracer
	// Allow returns Forbidden (403) if authz does not allow the attributes.
	Allow func(*request.Request, services.Attributes) error
	// Path is the path that a user must be allowed to get. Times show what is cached and what
	// others do, so that not every user may have them.
	Path string
}

// Timed records the stages and steps of a request that requires them. The response is held
// until it is complete or exceeds maxHeld, so that its header has the later ones too. Watches
// and connections have no timings: their response begins and does not end.
func (t *Timings) Timed(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Header.Get(request.TimingHeader) != request.TimingStages {
			return next(w, r)
		}
		if err := t.Allow(r, services.Attributes{User: r.User, Verb: "get", Path: t.Path}); err != nil {
			return err
		}
		if r.LongRunning() {
			return next(w, r)
		}
		return t.record(w, r, next)
	}
}

func (t *Timings) record(w http.ResponseWriter, r *request.Request, next request.Handler) (err error) {
	untimed, trace, began := r.Request, r.Trace, time.Now()
	if r.Audit != nil {
		began = r.Audit.Received
	}
	ctx, root, recording := t.Tracer.Record(r.Context(), "timed request", began)
	defer func() {
		root.End(err)
		r.Request, r.Trace = untimed, trace
	}()
	root.Set("http.request.method", r.Method)
	root.Set("url.path", r.URL.Path)
	tracing.Past(ctx, "authenticated", began) // impersonation included
	r.Request = r.WithContext(ctx)
	if r.Trace == nil {
		r.Trace = &request.Trace{Root: root}
	}
	held := &writer{ResponseWriter: w, announce: func() { add(w.Header(), recording.Steps(), time.Since(began)) }}
	if err = next(held, r); err != nil {
		held.drop()
		return err
	}
	return held.send()
}

// add adds the steps to a header, in milliseconds: how long each took, and when it began.
func add(h http.Header, steps []tracing.Step, total time.Duration) {
	h.Add("Server-Timing", fmt.Sprintf("total;dur=%.3f;start=0", milliseconds(total)))
	for _, s := range steps {
		entry := fmt.Sprintf("%s;dur=%.3f;start=%.3f", strings.Map(token, s.Name), milliseconds(s.Took), milliseconds(s.Start))
		if strings.Map(token, s.Name) != s.Name {
			entry += fmt.Sprintf(";desc=%q", s.Name)
		}
		h.Add("Server-Timing", entry)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// token replaces what the name of an entry cannot contain.
func token(c rune) rune {
	if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c == '_' {
		return c
	}
	return '-'
}
