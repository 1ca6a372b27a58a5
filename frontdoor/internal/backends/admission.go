package backends

import (
	"context"
	"sync"
	"time"

	"github.com/portico-platform/portico/services"
)

const (
	// unconcernedLifetime bounds how long admission is not called about requests of a kind that
	// do not concern it: it may restart with other plugins.
	unconcernedLifetime = 5 * time.Second
	// changesLifetime is how long requests of a kind are expected to be changed by admission
	// after one was.
	changesLifetime = time.Minute
	// maxKinds bounds the kinds of requests that are remembered, and those of single namespaces.
	maxKinds = 10_000
)

// Admission is an Admission in another process that is called as little as possible: not at all
// about requests that concern none of its plugins and webhooks, and once instead of twice
// about those that it does not change.
type Admission struct {
	services.Admission
	// unchanged reports whether no configuration of webhooks has changed after a revision, and
	// unchangedIn whether a namespace and its quotas have not.
	unchanged   func(revision int64) bool
	unchangedIn func(namespace string, revision int64) bool

	mu    sync.Mutex
	kinds map[requestKind]experience
	here  map[placedKind]relief
}

// requestKind is what admission's concern depends on.
type requestKind struct {
	operation                             services.Operation
	group, version, resource, subresource string
	namespaced                            bool
}

// placedKind is a kind of requests in one namespace.
type placedKind struct {
	requestKind
	namespace string
}

// relief is that requests need no review.
type relief struct {
	since int64 // as in services.AdmissionResponse; 0 if they need one
	until time.Time
}

// experience is what is known of the requests of a kind.
type experience struct {
	unconcerned  relief
	changedUntil time.Time
}

// NewAdmission returns an Admission that knows nothing yet.
func NewAdmission(admission services.Admission, unchanged func(revision int64) bool, unchangedIn func(namespace string, revision int64) bool) *Admission {
	return &Admission{Admission: admission, unchanged: unchanged, unchangedIn: unchangedIn,
		kinds: map[requestKind]experience{}, here: map[placedKind]relief{}}
}

func kindOf(r *services.AdmissionRequest) requestKind {
	return requestKind{r.Operation, r.Group, r.Version, r.Resource, r.Subresource, r.Namespace != ""}
}

// known returns what is known of requests of a kind, and whether those in a namespace need no review.
func (a *Admission) known(k requestKind, namespace string) (e experience, spared bool) {
	a.mu.Lock()
	e, here := a.kinds[k], a.here[placedKind{k, namespace}]
	a.mu.Unlock()
	now := time.Now()
	valid := func(r relief) bool { return r.since > 0 && now.Before(r.until) && a.unchanged(r.since) }
	return e, valid(e.unconcerned) || valid(here) && a.unchangedIn(namespace, here.since)
}

// spared reports whether a request needs no review.
func (a *Admission) spared(r *services.AdmissionRequest) bool {
	_, spared := a.known(kindOf(r), r.Namespace)
	return spared
}

// Joins reports whether it is expected that admission validates the object of a request in the
// call of Mutate.
func (a *Admission) Joins(r services.AdmissionRequest) bool {
	e, spared := a.known(kindOf(&r), r.Namespace)
	return !spared && time.Now().After(e.changedUntil)
}

// Mutate implements services.Admission.
func (a *Admission) Mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if a.spared(&r) {
		return services.AdmissionResponse{Validated: r.AndValidate || r.ValidateEarly}, nil
	}
	response, err := a.Admission.Mutate(ctx, r)
	if err == nil {
		a.learn(placedKind{kindOf(&r), r.Namespace}, response)
	}
	return response, err
}

// Validate implements services.Admission.
func (a *Admission) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if a.spared(&r) {
		return services.AdmissionResponse{}, nil
	}
	return a.Admission.Validate(ctx, r)
}

// Refund implements services.AdmissionRefunds.
func (a *Admission) Refund(ctx context.Context, charge []byte) error {
	if refunds, ok := a.Admission.(services.AdmissionRefunds); ok {
		return refunds.Refund(ctx, charge)
	}
	return nil
}

func (a *Admission) learn(kind placedKind, response services.AdmissionResponse) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	e, known := a.kinds[kind.requestKind]
	if !known && len(a.kinds) >= maxKinds {
		clear(a.kinds)
	}
	e.unconcerned = relief{response.Unconcerned, now.Add(unconcernedLifetime)}
	if response.Object != nil {
		e.changedUntil = now.Add(changesLifetime)
	}
	a.kinds[kind.requestKind] = e
	if response.UnconcernedHere == 0 {
		delete(a.here, kind)
		return
	}
	if _, known := a.here[kind]; !known && len(a.here) >= maxKinds {
		clear(a.here)
	}
	a.here[kind] = relief{response.UnconcernedHere, now.Add(unconcernedLifetime)}
}

var (
	_ services.Admission        = (*Admission)(nil)
	_ services.AdmissionRefunds = (*Admission)(nil)
)
