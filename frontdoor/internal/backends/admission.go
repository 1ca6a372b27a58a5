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
	// maxKinds bounds the kinds of requests that are remembered.
	maxKinds = 10_000
)

// Admission is an Admission in another process that is called as little as possible: not at all
// about requests that concern none of its plugins and webhooks, and once instead of twice
// about those that it does not change.
type Admission struct {
	services.Admission
	// unchanged reports whether no configuration of webhooks has changed after a revision.
	unchanged func(revision int64) bool

	mu    sync.Mutex
	kinds map[requestKind]experience
}

// requestKind is what admission's concern depends on.
type requestKind struct {
	operation                             services.Operation
	group, version, resource, subresource string
	namespaced                            bool
}

// experience is what is known of the requests of a kind.
type experience struct {
	unconcerned                    int64 // as in services.AdmissionResponse
	unconcernedUntil, changedUntil time.Time
}

// NewAdmission returns an Admission that knows nothing yet.
func NewAdmission(admission services.Admission, unchanged func(revision int64) bool) *Admission {
	return &Admission{Admission: admission, unchanged: unchanged, kinds: map[requestKind]experience{}}
}

func kindOf(r *services.AdmissionRequest) requestKind {
	return requestKind{r.Operation, r.Group, r.Version, r.Resource, r.Subresource, r.Namespace != ""}
}

func (a *Admission) known(k requestKind) experience {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kinds[k]
}

// Joins reports whether it is expected that admission validates the object of a request in the
// call of Mutate.
func (a *Admission) Joins(r services.AdmissionRequest) bool {
	e := a.known(kindOf(&r))
	return !a.unconcerned(e) && time.Now().After(e.changedUntil)
}

func (a *Admission) unconcerned(e experience) bool {
	return e.unconcerned > 0 && time.Now().Before(e.unconcernedUntil) && a.unchanged(e.unconcerned)
}

// Mutate implements services.Admission.
func (a *Admission) Mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	kind := kindOf(&r)
	if a.unconcerned(a.known(kind)) {
		return services.AdmissionResponse{Validated: r.AndValidate}, nil
	}
	response, err := a.Admission.Mutate(ctx, r)
	if err == nil {
		a.learn(kind, response)
	}
	return response, err
}

// Validate implements services.Admission.
func (a *Admission) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if a.unconcerned(a.known(kindOf(&r))) {
		return services.AdmissionResponse{}, nil
	}
	return a.Admission.Validate(ctx, r)
}

func (a *Admission) learn(kind requestKind, response services.AdmissionResponse) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	e, known := a.kinds[kind]
	if !known && len(a.kinds) >= maxKinds {
		clear(a.kinds)
	}
	e.unconcerned, e.unconcernedUntil = response.Unconcerned, now.Add(unconcernedLifetime)
	if response.Object != nil {
		e.changedUntil = now.Add(changesLifetime)
	}
	a.kinds[kind] = e
}

var _ services.Admission = (*Admission)(nil)
