// Package operations serves /debug/portico/v1, through which administrators see and steer a
// running suite: the measurements of its processes, and the watches in progress. Callers are
// authorized for these paths as for all that are no resources. docs/operations/tools.md describes
// the answers.
package operations

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads/watches"
	"github.com/portico-platform/portico/services"
)

// Root is the path below which everything is served.
const Root = "/debug/portico/v1"

// maxWatches is the largest number of watches in an answer, and defaultWatches the one for
// requests that name none.
const maxWatches, defaultWatches = 1000, 200

// Handlers serve the paths.
type Handlers struct {
	Watches   *watches.Registry
	Processes *Processes
}

// Routes adds the paths to a router. failing adapts handlers that return their error.
func (h *Handlers) Routes(r chi.Router, failing func(func(http.ResponseWriter, *http.Request) error) http.HandlerFunc) {
	r.Get(Root+"/processes", failing(h.processes))
	r.Get(Root+"/watches", failing(h.watches))
	r.Delete(Root+"/watches/{id}", failing(h.endWatch))
}

// watchList is the answer to GET watches. Total counts also those beyond the limit.
type watchList struct {
	Items []watches.Watch `json:"items"`
	Total int             `json:"total"`
}

func (h *Handlers) watches(w http.ResponseWriter, r *http.Request) error {
	limit := defaultWatches
	if given := r.URL.Query().Get("limit"); given != "" {
		var err error
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > maxWatches {
			return services.BadRequest("limit: %q is not between 1 and %d", given, maxWatches)
		}
	}
	items, total := h.Watches.List(limit)
	if items == nil {
		items = []watches.Watch{}
	}
	return write(w, watchList{items, total})
}

func (h *Handlers) endWatch(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if !h.Watches.End(id) {
		return services.NotFound("", "watches", id)
	}
	return write(w, map[string]string{"id": id, "status": "closed"})
}

func (h *Handlers) processes(w http.ResponseWriter, r *http.Request) error {
	return write(w, processList{h.Processes.All(r.Context())})
}

func write(w http.ResponseWriter, answer any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return json.NewEncoder(w).Encode(answer)
}
