package frontdoor

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/request"
	"github.com/portico-platform/portico/services/run"
)

// health serves /healthz, /livez and /readyz (section "Health endpoints"). What
// counts for machines is the status code: 200 or 500.
type health struct{ checks *run.Health }

func (h health) serve(w http.ResponseWriter, r *http.Request) error {
	endpoint, name, single := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	checks := h.of(endpoint)
	if single {
		i := slices.IndexFunc(checks, func(c run.Check) bool { return c.Name == name })
		if i < 0 {
			http.NotFound(w, r)
			return nil
		}
		checks = checks[i : i+1]
	}
	query := r.URL.Query()
	report, failed := probe(r, checks, query["exclude"])
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%shealthz check failed\n", report)
	case query.Has("verbose"):
		fmt.Fprintf(w, "%shealthz check passed\n", report)
	default:
		fmt.Fprint(w, "ok")
	}
	return nil
}

// of returns the checks of an endpoint.
func (h health) of(endpoint string) []run.Check {
	checks := h.checks.Checks()
	if endpoint == "readyz" {
		return checks
	}
	return slices.DeleteFunc(checks, func(c run.Check) bool { return !c.Live })
}

// probe runs the checks and writes a line for each. Why one failed is for the
// log of the service that failed, not for the network.
func probe(r *http.Request, checks []run.Check, excluded []string) (report string, failed bool) {
	var lines bytes.Buffer
	for _, c := range checks {
		switch {
		case slices.Contains(excluded, c.Name):
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
			excluded = slices.DeleteFunc(slices.Clone(excluded), func(s string) bool { return s == c.Name })
		case c.Probe(r.Context()) != nil:
			failed = true
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.Name)
		default:
			fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", excluded)
	}
	return lines.String(), failed
}

// plain returns what serves a path that names no resource.
func (d *door) plain(r *http.Request) request.Handler {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	serve, ok := d.plainPaths[first]
	if !ok {
		return request.NoPage
	}
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return request.NoMethod()
		}
		return serve(w, r.Request)
	}
}
