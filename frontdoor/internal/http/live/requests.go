// Package live keeps what has been decided about callers true: the users that authn has
// identified, and the long-running requests in progress, which authz has allowed. It follows
// changes of policy and identities, asks both services again and ends what they no longer
// allow. It decides nothing itself. It serves sections "Authentication" and "Authorization
// notes" of the specification.
package live

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
)

// Config configures Requests.
type Config struct {
	Authn services.Authn
	// Authz must not cache decisions.
	Authz services.Authz
	// Forbidden returns the error of a denied request.
	Forbidden func(services.Attributes, services.Decision) *services.Status
	Log       *slog.Logger
	Metrics   prometheus.Registerer // nil for none
}

// Requests are the long-running requests in progress: watches and connections. One is ended
// when its caller may no longer make it.
type Requests struct {
	config Config
	ended  *prometheus.CounterVec
	// policy is the revision of the newest known change of a role or binding; reached is the
	// revision through which authn must include every change.
	policy, reached atomic.Int64
	changed         chan struct{}
	bound           bonds[*identity]

	mu         sync.Mutex
	identities map[[sha256.Size]byte]*identity
}

// NewRequests returns Requests without any.
func NewRequests(c Config) *Requests {
	q := &Requests{config: c, changed: make(chan struct{}, 1), identities: map[[sha256.Size]byte]*identity{}}
	q.ended = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portico_withdrawn_requests_total",
		Help: "Watches and connections that ended because their caller may no longer make them, by status code."}, []string{"code"})
	if c.Metrics != nil {
		c.Metrics.MustRegister(q.ended)
	}
	return q
}

// Request is one long-running request, with everything that was decided about it.
type Request struct {
	credentials services.Credentials
	result      services.Authentication
	decided     []decided
	of          *identity
	end         context.CancelCauseFunc
}

// decided is an allowed question about a request.
type decided struct {
	services.Attributes
	own      bool // the user is the caller, and not impersonated
	revision int64
}

// NewRequest returns a request with credentials that authn has accepted. Of their headers
// only those are kept that name the user, and the path only of an anonymous request.
func NewRequest(c services.Credentials, a services.Authentication) *Request {
	kept := map[string][]string{}
	for _, name := range a.ProxyHeaders {
		if values, ok := c.Headers[name]; ok {
			kept[name] = values
		}
	}
	c.Headers = kept
	if a.Credential.Method != "" {
		c.Path = ""
	}
	return &Request{credentials: c, result: a}
}

// Allowed adds a decision of authz that allows the request; own is false if the user of the
// attributes is impersonated.
func (r *Request) Allowed(a services.Attributes, d services.Decision, own bool) {
	r.decided = append(r.decided, decided{a, own, d.Revision})
}

// Open adds a request. end is called with the Status, 401 or 403, once it is no longer
// allowed. The caller must close it.
func (q *Requests) Open(r *Request, end context.CancelCauseFunc) {
	r.end = end
	key := identityKey(r.credentials)
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.identities[key]
	if !ok {
		now := time.Now()
		i = &identity{key: key, credentials: r.credentials, result: r.result, at: now, requests: map[*Request]struct{}{}, questions: map[string]*question{}}
		q.identities[key] = i
		q.bound.add(i.result.Credential.Objects, i)
		// What it is bound to may have changed before it was added.
		i.stale = len(i.result.Credential.Objects) > 0
	}
	r.of = i
	i.add(r)
	if i.stale || i.asksAuthz(q.policy.Load(), time.Now()) {
		q.wake()
	}
}

// Close removes a request.
func (q *Requests) Close(r *Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.of.remove(r); len(r.of.requests) == 0 && q.identities[r.of.key] == r.of {
		q.bound.remove(r.of.result.Credential.Objects, r.of)
		delete(q.identities, r.of.key)
	}
}

// PolicyChanged is the changes.Observer of roles and bindings.
func (q *Requests) PolicyChanged(revision int64, list []services.Change) {
	if list == nil {
		q.again(func(i *identity) { i.forget() })
	}
	reach(&q.policy, revision, list)
	q.wake()
}

// Revoked is the changes.Observer of Revocations, which may concern any credentials.
func (q *Requests) Revoked(revision int64, list []services.Change) {
	reach(&q.reached, revision, list)
	q.again(func(i *identity) { i.stale = true })
}

// ObjectsChanged is the changes.Observer of the types that credentials are bound to.
func (q *Requests) ObjectsChanged(revision int64, list []services.Change) {
	reach(&q.reached, revision, list)
	if list == nil {
		q.again(func(i *identity) { i.stale = i.stale || len(i.result.Credential.Objects) > 0 })
	}
	for c := range list {
		for _, i := range q.bound.to(&list[c]) {
			q.mu.Lock()
			i.stale = true
			q.mu.Unlock()
			q.wake()
		}
	}
}

// again marks identities that must be checked again.
func (q *Requests) again(mark func(*identity)) {
	q.mu.Lock()
	for _, i := range q.identities {
		mark(i)
	}
	q.mu.Unlock()
	q.wake()
}

func (q *Requests) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}
