package auditing

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

const (
	// recentRequests bounds how many requests Recent keeps, and recentText the bytes of each
	// of their texts: together at most 4 MiB.
	recentRequests = 4096
	recentText     = 256
)

// Recent keeps the last requests of a front door in memory, whatever the audit policy says.
// It has no bodies and no queries, which may name secrets.
type Recent struct {
	mu   sync.Mutex
	ring [recentRequests]recent
	next uint64 // the requests so far
}

type recent struct {
	received         time.Time
	took             time.Duration
	verb, path, user string
	impersonated     string
	agent            string
	code             int
	deprecated       bool
}

// add keeps a finished request. Paths, names and headers are copied, so that they do not keep
// the memory of the request.
func (q *Recent) add(r *request.Request, code int) {
	e := recent{received: r.Audit.Received, took: time.Since(r.Audit.Received), verb: r.Verb, code: code,
		path: brief(r.URL.Path), user: brief(r.Caller.Name), agent: brief(r.UserAgent()),
		deprecated: r.Type != nil && r.Type.Deprecation != nil}
	if r.Impersonated {
		e.impersonated = brief(r.User.Name)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ring[q.next%recentRequests] = e
	q.next++
}

func brief(s string) string { return strings.Clone(s[:min(len(s), recentText)]) }

// recentRequest is a request in the answer of Serve.
type recentRequest struct {
	Received     time.Time `json:"received"`
	Milliseconds float64   `json:"milliseconds"`
	Verb         string    `json:"verb"`
	Path         string    `json:"path"`
	User         string    `json:"user,omitempty"`
	Impersonated string    `json:"impersonatedUser,omitempty"`
	UserAgent    string    `json:"userAgent,omitempty"`
	Code         int       `json:"code"`
	Deprecated   bool      `json:"deprecated,omitempty"`
}

// Serve answers with the last requests, the newest first. Parameter limit bounds their number.
// The caller has to be authorized for the path.
func (q *Recent) Serve(w http.ResponseWriter, r *http.Request) error {
	limit := recentRequests
	if requested := r.URL.Query().Get("limit"); requested != "" {
		n, err := strconv.Atoi(requested)
		if err != nil || n < 1 {
			return services.BadRequest("limit: %q is not a positive number", requested)
		}
		limit = min(limit, n)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{"requests": q.last(limit)})
}

func (q *Recent) last(limit int) []recentRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(uint64(limit), q.next, recentRequests)
	found := make([]recentRequest, 0, n)
	for i := range n {
		e := &q.ring[(q.next-1-i)%recentRequests]
		found = append(found, recentRequest{Received: e.received, Milliseconds: float64(e.took.Microseconds()) / 1000, Verb: e.verb, Path: e.path,
			User: e.user, Impersonated: e.impersonated, UserAgent: e.agent, Code: e.code, Deprecated: e.deprecated})
	}
	return found
}
