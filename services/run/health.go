package run

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Check is one named health check of a process.
type Check struct {
	Name string
	// Live is true for a check that /livez looks at too; the others say only
	// whether the process is ready.
	Live bool
	// Probe returns nil when all is well. It must be quick.
	Probe func(ctx context.Context) error
}

// Health is the list of a process's checks (section "Health endpoints").
type Health struct {
	log    *slog.Logger
	mu     sync.Mutex
	checks []Check
}

// Add registers a check. Names are unique by the care of the services.
func (h *Health) Add(c Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, c)
}

// Checks returns the checks in the order of registration.
func (h *Health) Checks() []Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.checks)
}

// Handler answers /livez, /readyz and /healthz, and single checks below them,
// with verbose and exclude. Reasons of failures are logged and not told.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, endpoint := range []string{"livez", "readyz", "healthz"} {
		mux.HandleFunc("GET /"+endpoint, func(w http.ResponseWriter, r *http.Request) {
			h.answer(w, r, h.of(endpoint))
		})
		mux.HandleFunc("GET /"+endpoint+"/{check}", func(w http.ResponseWriter, r *http.Request) {
			one := slices.DeleteFunc(h.of(endpoint), func(c Check) bool { return c.Name != r.PathValue("check") })
			if len(one) == 0 {
				http.NotFound(w, r)
				return
			}
			h.answer(w, r, one)
		})
	}
	return mux
}

// of returns the checks that an endpoint looks at.
func (h *Health) of(endpoint string) []Check {
	checks := h.Checks()
	if endpoint != "livez" {
		return checks
	}
	return slices.DeleteFunc(checks, func(c Check) bool { return !c.Live })
}

// logger is the process's; a Health without a process has none.
func (h *Health) logger() *slog.Logger {
	if h.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.log
}

// answer runs the checks. What counts for machines is the status code: 200 or 500.
func (h *Health) answer(w http.ResponseWriter, r *http.Request, checks []Check) {
	query := r.URL.Query()
	report, failed := h.probe(r, checks, query["exclude"])
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%shealthz check failed\n", report)
	case query.Has("verbose"):
		fmt.Fprintf(w, "%shealthz check passed\n", report)
	default:
		fmt.Fprint(w, "ok")
	}
}

// probe writes a line for each check.
func (h *Health) probe(r *http.Request, checks []Check, excluded []string) (report string, failed bool) {
	var lines strings.Builder
	for _, c := range checks {
		if slices.Contains(excluded, c.Name) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
			excluded = slices.DeleteFunc(slices.Clone(excluded), func(name string) bool { return name == c.Name })
		} else if err := c.Probe(r.Context()); err != nil {
			failed = true
			h.logger().Warn("health check failed", "path", r.URL.Path, "check", c.Name, "error", err)
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.Name)
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", excluded)
	}
	return lines.String(), failed
}
