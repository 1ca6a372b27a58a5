package authz

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/authz/internal/rbac"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/changes"
	"github.com/portico-platform/portico/services/resource"
)

// restFactor is how much longer than compiling an index takes the authorizer
// waits before it compiles the next: a flood of new bindings costs at most a
// fifth of one processor.
const restFactor = 4

// authorizer answers from an index that it keeps in step with what is stored. It
// must not be asked before it is ready.
type authorizer struct {
	index    atomic.Pointer[rbac.Index]
	changed  chan struct{}
	ready    chan struct{} // closed when the first index is there
	roles    [2]*changes.Mirror[*rbac.Role]    // of the cluster, of namespaces
	bindings [2]*changes.Mirror[*rbac.Binding] // likewise
}

// sources is where an authorizer takes roles and bindings from.
type sources struct {
	changes changes.Source
	store   services.Reader
	group   string // of the resource types
	log     *slog.Logger
}

func newAuthorizer(s sources) *authorizer {
	a := &authorizer{changed: make(chan struct{}, 1), ready: make(chan struct{})}
	for i, name := range []string{"clusterroles", "roles"} {
		a.roles[i] = mirror(s, name, rbac.ParseRole, a.noteChange)
	}
	for i, name := range []string{"clusterrolebindings", "rolebindings"} {
		a.bindings[i] = mirror(s, name, rbac.ParseBinding, a.noteChange)
	}
	return a
}

func mirror[T any](s sources, name string, parse func(services.Object) (T, error), changed func()) *changes.Mirror[T] {
	return changes.NewMirror(changes.MirrorConfig[T]{
		Source: s.changes, Store: s.store, GroupResource: resource.GroupResource{Group: s.group, Resource: name},
		Decode: parse, Changed: changed, Log: s.log,
	})
}

func (a *authorizer) noteChange() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// loops are what has to run for the authorizer to be of use.
func (a *authorizer) loops() []func(context.Context) error {
	return []func(context.Context) error{a.roles[0].Run, a.roles[1].Run, a.bindings[0].Run, a.bindings[1].Run, a.compile}
}

// compile waits until all is read and then keeps the index current.
func (a *authorizer) compile(ctx context.Context) error {
	for _, ready := range []<-chan struct{}{a.roles[0].Ready(), a.roles[1].Ready(), a.bindings[0].Ready(), a.bindings[1].Ready()} {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	for first := true; ; first = false {
		began := time.Now()
		roles := append(a.roles[0].List(""), a.roles[1].List("")...)
		bindings := append(a.bindings[0].List(""), a.bindings[1].List("")...)
		a.index.Store(rbac.Compile(roles, bindings))
		if first {
			close(a.ready)
		}
		rest := time.NewTimer(restFactor * time.Since(began))
		select {
		case <-rest.C:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-a.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Authorize implements services.Authz.
func (a *authorizer) Authorize(_ context.Context, q services.Attributes) (services.Decision, error) {
	return a.index.Load().Authorize(q), nil
}

// Rules implements services.Authz.
func (a *authorizer) Rules(_ context.Context, r services.RulesRequest) (services.Rules, error) {
	return a.index.Load().Rules(r), nil
}

var _ services.Authz = (*authorizer)(nil)
