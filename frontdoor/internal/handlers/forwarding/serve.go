package forwarding

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/streaming/pkg/httpstream"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
)

// Route makes another front door serve the request, if it is for a type that this one does not serve and another does. A request that another front door has
// handed on is served here or refused with Unavailable (503): the other one will know soon what this one serves.
func (h *Handlers) Route(r *request.Request) {
	if r.Forwarded == nil && len(*h.others.Load()) == 0 {
		return
	}
	target, ok := r.Target()
	served := ok && h.serves(target)
	switch {
	case r.Forwarded != nil && !served:
		r.Type, r.Subresource, r.Health = nil, nil, false
		r.Plain = func(http.ResponseWriter, *request.Request) error {
			return services.Unavailable("the front door %s does not serve the type of a forwarded request", h.Peers.Host)
		}
	case !ok || served || r.Forwarded != nil || r.Header.Get(h.Header) != "":
	default:
		if found := h.serving(target); len(found) > 0 {
			r.Extend(func(w http.ResponseWriter, r *request.Request) error { return h.forward(w, r, target) }, h.seats)
		}
	}
}

// serves reports whether this front door serves a target.
func (h *Handlers) serves(target request.Target) bool {
	t, ok := h.Engine().Types.Lookup(target.Group, target.Version, target.Resource)
	return ok && (target.Subresource == "" || t.Subresources[target.Subresource] != nil)
}

// serving returns the other front doors that serve a target, in the order in which to ask them: at random, those that
// could not be reached last.
func (h *Handlers) serving(target request.Target) (found []*other) {
	for _, o := range *h.others.Load() {
		o.mu.Lock()
		if o.targets[target] && o.At != "" {
			found = append(found, o)
		}
		o.mu.Unlock()
	}
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	now := time.Now()
	slices.SortStableFunc(found, func(a, b *other) int { return a.until(now).Compare(b.until(now)) })
	return found
}

// until returns when the front door is no longer avoided, the zero time for one that is not.
func (a *answered) until(now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.avoid.After(now) {
		return a.avoid
	}
	return time.Time{}
}

// forward forwards a request. If no connection to a front door can be opened, the next one is tried; a request
// that may have been sent is never sent again.
func (h *Handlers) forward(w http.ResponseWriter, r *request.Request, target request.Target) error {
	body := r.Body
	defer func() { r.Body = body }()
	if body != nil && !httpstream.IsUpgradeRequest(r.Request) {
		r.Body = io.NopCloser(http.MaxBytesReader(w, body, ledger.Body.Bytes)) // which a failed attempt would close
	}
	var err error
	for _, o := range h.serving(target) {
		var sent bool
		if sent, err = h.attempt(w, r, o); sent {
			h.count(target, err)
			return err
		}
		o.mu.Lock()
		o.avoid = time.Now().Add(avoided)
		o.mu.Unlock()
		h.Log.Debug("another front door could not be reached", "host", o.Host, "at", o.At, "error", err)
	}
	h.metrics.failed.WithLabelValues("endpoint_resolution", target.Group, target.Version, target.Resource).Inc()
	return services.Unavailable("no front door that serves %s could be reached, please try again", target.Resource)
}

// attempt forwards a request to one front door. sent is false if none of it can have arrived there.
func (h *Handlers) attempt(w http.ResponseWriter, r *request.Request, to *other) (sent bool, err error) {
	before := r.Request
	defer func() { r.Request = before }()
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	r.Request = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	way := h.over(to)
	way.Name = func(header http.Header) error {
		header.Set(h.Header, "true")
		header.Set("Audit-Id", r.Audit.ID)
		return r.Forward(h.Peers.Host, header)
	}
	r.Audit.Annotate("portico/forwarded-to", to.Host)
	out := &answer{ResponseWriter: w, own: w.Header().Clone(), counted: func(code int) { h.answered(r, code) }}
	err = h.Connections.Extend(out, r, way)
	return err == nil || connected.Load() || out.code != 0 || httpstream.IsUpgradeRequest(r.Request) || r.Context().Err() != nil, err
}

// answered counts an answer of another front door.
func (h *Handlers) answered(r *request.Request, code int) {
	t, _ := r.Target()
	h.metrics.forwarded.WithLabelValues(strconv.Itoa(code), t.Group, t.Version, t.Resource).Inc()
}

// count counts a request that failed after it was sent.
func (h *Handlers) count(t request.Target, err error) {
	var status *services.Status
	if errors.As(err, &status) && status.Code == http.StatusServiceUnavailable {
		h.metrics.failed.WithLabelValues("proxy_transport", t.Group, t.Version, t.Resource).Inc()
	}
}

// answer is the ResponseWriter of a forwarded request. The headers that this front door has set are not
// replaced: the other one has set them too.
type answer struct {
	http.ResponseWriter
	own     http.Header
	counted func(code int)
	code    int
}

func (a *answer) WriteHeader(code int) {
	if a.code == 0 {
		for name, values := range a.own {
			a.Header()[name] = values
		}
		a.Record(code)
	}
	a.ResponseWriter.WriteHeader(code)
}

// Record notes the status of a response that is written to the connection itself.
func (a *answer) Record(code int) {
	if a.code == 0 {
		a.code = code
		a.counted(code)
	}
	if to, ok := a.ResponseWriter.(interface{ Record(int) }); ok {
		to.Record(code)
	}
}

// Unwrap supports http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
