package run

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/portico-platform/portico/services/kit/run/slis"
)

// Check is one named health check of a process.
type Check struct {
	Name string
	// Live is true for checks that are part of /livez too; the others are part of /readyz
	// only.
	Live bool
	// Partial is true for checks of a part of the service: /readyz names a failing one, and passes.
	Partial bool
	// Probe returns nil if the check passes. Its timeout is probeTime.
	Probe func(ctx context.Context) error
	// Note returns what a verbose response of the status address adds while the check
	// passes. It may be nil.
	Note func() string

	running *probing
}

// probeTime bounds one check: health endpoints must respond soon.
const probeTime = 2 * time.Second

// probing lets concurrent requests share one run of a check, so that there is at most one
// stuck run per check.
type probing struct {
	mu   sync.Mutex
	done chan struct{} // closed when the run is over; nil when there is none
	err  error
	// failing is set while the check fails, as far as is logged.
	failing atomic.Bool
}

// Run returns the result of the check after at most probeTime: a run that takes longer,
// also one that was started before, has failed.
func (c Check) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p := c.running
	if p == nil {
		p = &probing{}
	}
	p.mu.Lock()
	done := p.done
	if done == nil {
		done = make(chan struct{})
		p.done = done
		go func() {
			// The run is shared, so it does not end with the first request.
			probe, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
			defer cancel()
			err := c.Probe(probe)
			p.mu.Lock()
			p.err, p.done = err, nil
			p.mu.Unlock()
			close(done)
		}()
	}
	p.mu.Unlock()
	select {
	case <-done:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// Health is the list of a process's checks (section "Health endpoints").
type Health struct {
	log      *slog.Logger
	outcomes *slis.Outcomes
	mu       sync.Mutex
	checks   []Check
}

// Add registers a check. Services must use unique names.
func (h *Health) Add(c Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.running = &probing{}
	h.checks = append(h.checks, c)
}

// Checks returns the checks in the order of registration.
func (h *Health) Checks() []Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.checks)
}

// Routes adds /livez, /readyz and /healthz, and single checks below them, with the
// parameters verbose and exclude, to a router for any client. Reasons of failures are logged
// and not returned.
func (h *Health) Routes(r chi.Router) { healthPages{h, false}.routes(r) }

// healthPages serves the health endpoints, with the notes of checks only for those who
// operate the process.
type healthPages struct {
	*Health
	notes bool
}

func (h healthPages) routes(r chi.Router) {
	for _, endpoint := range []string{"livez", "readyz", "healthz"} {
		r.Get("/"+endpoint, func(w http.ResponseWriter, r *http.Request) {
			h.answer(w, r, endpoint, h.of(endpoint))
		})
		r.Get("/"+endpoint+"/{check}", func(w http.ResponseWriter, r *http.Request) {
			one := slices.DeleteFunc(h.of(endpoint), func(c Check) bool { return c.Name != r.PathValue("check") })
			if len(one) == 0 {
				http.NotFound(w, r)
				return
			}
			one[0].Partial = false
			h.answer(w, r, endpoint, one)
		})
	}
}

// of returns the checks of an endpoint.
func (h *Health) of(endpoint string) []Check {
	checks := h.Checks()
	if endpoint != "livez" {
		return checks
	}
	return slices.DeleteFunc(checks, func(c Check) bool { return !c.Live })
}

// answer runs the checks of an endpoint and responds with 200 if all pass, else 500.
func (h healthPages) answer(w http.ResponseWriter, r *http.Request, endpoint string, checks []Check) {
	query := r.URL.Query()
	report, failed := h.probe(r, endpoint, checks, query["exclude"])
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", report, endpoint)
	case query.Has("verbose"):
		fmt.Fprintf(w, "%s%s check passed\n", report, endpoint)
	default:
		fmt.Fprint(w, "ok")
	}
}

// note counts the outcome of a check, and logs when it begins to fail or passes again. Anyone may
// request checks at any rate, so a check that goes on failing is not logged again, and one whose
// client has left shows nothing.
func (h *Health) note(r *http.Request, endpoint string, c Check, err error) {
	if r.Context().Err() != nil {
		return
	}
	h.outcomes.Observe(c.Name, endpoint, err)
	if h.log == nil || c.running == nil || c.running.failing.Swap(err != nil) == (err != nil) {
		return
	}
	if err == nil {
		h.log.Info("health check passes again", "check", c.Name)
		return
	}
	h.log.Warn("health check fails", "path", r.URL.Path, "check", c.Name, "error", err)
}

// runAll runs the checks concurrently and returns their results in order.
func runAll(ctx context.Context, checks []Check, excluded []string) []error {
	outcomes := make([]error, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		if !slices.Contains(excluded, c.Name) {
			group.Go(func() { outcomes[i] = c.Run(ctx) })
		}
	}
	group.Wait()
	return outcomes
}

type reasonsKey struct{}

// WithReasons returns the context of a request for health whose response says why checks fail: its user operates the
// process.
func WithReasons(ctx context.Context) context.Context {
	return context.WithValue(ctx, reasonsKey{}, true)
}

// reason returns what a report says of a failure: the reason only to those who operate the process; at its status
// address, that of parts.
func (h healthPages) reason(r *http.Request, c Check, err error) string {
	if h.notes && c.Partial || r.Context().Value(reasonsKey{}) != nil {
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return "reason withheld"
}

// probe runs the checks and returns a report with a line for each.
func (h healthPages) probe(r *http.Request, endpoint string, checks []Check, excluded []string) (report string, failed bool) {
	var lines strings.Builder
	outcomes := runAll(r.Context(), checks, excluded)
	for i, c := range checks {
		if slices.Contains(excluded, c.Name) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
			excluded = slices.DeleteFunc(slices.Clone(excluded), func(name string) bool { return name == c.Name })
		} else if err := outcomes[i]; err != nil {
			failed = failed || !c.Partial
			h.note(r, endpoint, c, err)
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.Name, h.reason(r, c, err))
		} else {
			h.note(r, endpoint, c, nil)
			fmt.Fprintf(&lines, "[+]%s ok", c.Name)
			if h.notes && c.Note != nil && c.Note() != "" {
				lines.WriteString(": " + c.Note())
			}
			lines.WriteString("\n")
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", excluded)
	}
	return lines.String(), failed
}
