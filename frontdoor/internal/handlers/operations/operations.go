// Package operations serves /debug/portico/v1, through which administrators see and steer a
// running suite: the measurements of its processes, and the watches in progress. Callers are
// authorized for these paths as for all that are no resources. docs/operations/tools.md describes
// the answers.
package operations

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	apidiscovery "k8s.io/api/apidiscovery/v2"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations/peers"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads/watches"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
)

// Root is the path below which everything is served.
const Root = "/debug/portico/v1"

// maxWatches is the largest number of watches in an answer, and defaultWatches the one for
// requests that name none.
const maxWatches, defaultWatches = 1000, 200

// Handlers serve the paths.
type Handlers struct {
	Peers     *peers.Peers
	own       *watches.Registry
	processes *Processes
	served    []apidiscovery.APIGroupDiscovery
}

// New returns the handlers of a front door with these watches, which serves these built-in types.
func New(n *run.Node, store services.Store, own *watches.Registry, served []apidiscovery.APIGroupDiscovery) (*Handlers, error) {
	processes, err := NewProcesses(n, n.Service, own.Instance())
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	digest, err := peers.Digest(served)
	if err != nil {
		return nil, err
	}
	h := &Handlers{own: own, processes: processes, served: served}
	h.Peers = &peers.Peers{Config: peers.Config{Identity: n.Identity(), Store: store, Instance: own.Instance(), Host: host, Release: n.Release.String(), Served: digest,
		Answer: h.answer, Log: n.Log}}
	return h, nil
}

// Routes adds the paths to a router. failing adapts handlers that return their error.
func (h *Handlers) Routes(r chi.Router, failing func(func(http.ResponseWriter, *http.Request) error) http.HandlerFunc) {
	r.Get(Root+"/processes", failing(h.listProcesses))
	r.Get(Root+"/watches", failing(h.watches))
	r.Delete(Root+"/watches/{id}", failing(h.endWatch))
}

// watchList is the answer to GET watches: those of all front doors that have answered. Total
// counts also those beyond the limit.
type watchList struct {
	Items      []watches.Watch `json:"items"`
	Total      int             `json:"total"`
	FrontDoors []frontDoor     `json:"frontDoors"`
}

// frontDoor is a front door in an answer.
type frontDoor struct {
	Instance string `json:"instance,omitempty"`
	Host     string `json:"host,omitempty"`
	Address  string `json:"address,omitempty"`
	Total    int    `json:"total"`
	// Error is why it has not answered.
	Error string `json:"error,omitempty"`
}

// answer answers questions about this front door.
func (h *Handlers) answer(q peers.Question) peers.Answer {
	a := peers.Answer{Instance: h.own.Instance()}
	if q.Close != "" {
		a.Closed = h.own.End(q.Close)
	}
	if q.Served {
		a.Served = h.served
	}
	if q.Watches > 0 {
		a.Watches, a.Total = h.own.List(min(q.Watches, maxWatches))
	}
	return a
}

func (h *Handlers) watches(w http.ResponseWriter, r *http.Request) error {
	limit := defaultWatches
	if given := r.URL.Query().Get("limit"); given != "" {
		var err error
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > maxWatches {
			return services.BadRequest("limit: %q is not between 1 and %d", given, maxWatches)
		}
	}
	list := watchList{Items: []watches.Watch{}}
	for _, reply := range h.Peers.All(r.Context(), peers.Question{Watches: limit}) {
		of := frontDoor{Instance: reply.From.Instance, Host: reply.From.Host, Address: reply.From.At, Total: reply.Answer.Total}
		if reply.Err != nil {
			of.Error = reply.Err.Error()
		}
		list.FrontDoors = append(list.FrontDoors, of)
		list.Total += reply.Answer.Total
		list.Items = watches.First(append(list.Items, reply.Answer.Watches...), limit)
	}
	return write(w, list)
}

// endWatch ends a watch of any front door.
func (h *Handlers) endWatch(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	instance, _, _ := strings.Cut(id, "-")
	reply, err := h.Peers.One(r.Context(), instance, peers.Question{Close: id})
	switch {
	case services.IsReason(err, services.ReasonNotFound), err == nil && reply.Err == nil && !reply.Answer.Closed:
		return services.NotFound("", "watches", id)
	case err != nil:
		return err
	case reply.Err != nil:
		return services.Unavailable("closing the watch at front door %s (%s): %v", reply.From.Host, reply.From.At, reply.Err)
	}
	return write(w, map[string]string{"id": id, "status": "closed"})
}

func (h *Handlers) listProcesses(w http.ResponseWriter, r *http.Request) error {
	return write(w, processList{h.processes.All(r.Context())})
}

func write(w http.ResponseWriter, answer any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return json.NewEncoder(w).Encode(answer)
}
