package authz

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/authz/internal/rbac"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
)

// restFactor is the ratio of the pause after changing the index to the time that
// this took: a flood of new bindings costs at most a fifth of one core.
const restFactor = 4

// catchUpTimeout bounds how long a decision is delayed until the index includes
// everything stored before the request.
const catchUpTimeout = services.MaxAuthzWait

// roleBased is the mode RBAC: it answers from an index of the stored policy. It must not be
// called before it is ready.
type roleBased struct {
	store    services.Reader
	current  atomic.Pointer[view]
	changed  chan struct{}
	ready    chan struct{}                     // closed when there is a first index
	roles    [2]*changes.Mirror[*rbac.Role]    // ClusterRoles, Roles
	bindings [2]*changes.Mirror[*rbac.Binding] // likewise
	backlog  backlog                           // of the goroutine of compile
}

// view is the policy that decides.
type view struct {
	*rbac.Index
	roles    [2]changes.View[*rbac.Role]    // contents of the mirrors that it includes
	bindings [2]changes.View[*rbac.Binding] // likewise, except for changes that wait
	from     [4]state                       // their states
	behind   map[string]bool                // namespaces, or "" for the cluster, where changes of bindings wait
	settled  [4]state                       // their states when no change waited
	replaced chan struct{}                  // closed when there is a newer one
}

// state is a mirror's state that a view includes, or a newer one of the same
// objects: the revision that it has reached, and the one since which its objects are the same.
type state struct{ revision, changed int64 }

// states returns the present states of the mirrors.
func (a *roleBased) states() (now [4]state) {
	for i := range a.roles {
		now[i].revision, now[i].changed = a.roles[i].Reached()
		now[2+i].revision, now[2+i].changed = a.bindings[i].Reached()
	}
	return now
}

// reached returns the revision through which a view includes every role and binding that counts in
// some namespaces. Those of the cluster count in each.
func (a *roleBased) reached(v *view, namespaces ...string) int64 {
	from := v.from
	if v.behind[""] || slices.ContainsFunc(namespaces, func(n string) bool { return v.behind[n] }) {
		from = v.settled
	}
	least := int64(math.MaxInt64)
	for i, now := range a.states() {
		if now.changed > from[i].changed {
			now = from[i]
		}
		least = min(least, now.revision)
	}
	return least
}

// sources are where roles and bindings come from.
type sources struct {
	changes changes.Source
	store   services.Reader
	group   string // API group of the types
	log     *slog.Logger
}

func newRoleBased(s sources) *roleBased {
	a := &roleBased{store: s.store, changed: make(chan struct{}, 1), ready: make(chan struct{})}
	for i, name := range []string{"clusterroles", "roles"} {
		a.roles[i] = mirror(s, name, rbac.ParseRole, a.wake)
	}
	for i, name := range []string{"clusterrolebindings", "rolebindings"} {
		a.bindings[i] = mirror(s, name, rbac.ParseBinding, a.wake)
	}
	return a
}

func mirror[T any](s sources, name string, parse func(services.Object) (T, error), changed func()) *changes.Mirror[T] {
	return changes.NewMirror(changes.MirrorConfig[T]{
		Source: s.changes, Store: s.store, GroupResource: resource.GroupResource{Group: s.group, Resource: name},
		Decode: parse, Changed: changed, Log: s.log,
	})
}

// wake triggers the derivation of a new view.
func (a *roleBased) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// loops are the background loops.
func (a *roleBased) loops() []func(context.Context) error {
	return []func(context.Context) error{a.roles[0].Run, a.roles[1].Run, a.bindings[0].Run, a.bindings[1].Run, a.compile}
}

// compile waits for the first lists and then keeps the index current.
func (a *roleBased) compile(ctx context.Context) error {
	for _, ready := range []<-chan struct{}{a.roles[0].Ready(), a.roles[1].Ready(), a.bindings[0].Ready(), a.bindings[1].Ready()} {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	for {
		began := time.Now()
		more := a.renew()
		rest := time.NewTimer(restFactor * time.Since(began))
		select {
		case <-rest.C:
		case <-ctx.Done():
			return nil
		}
		if more {
			continue
		}
		select {
		case <-a.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// renew derives a view from the present one and what has changed in the mirrors. It reports whether
// some of it waits.
func (a *roleBased) renew() (more bool) {
	old, cost := a.current.Load(), roundCost
	if old == nil {
		old, cost = &view{Index: &rbac.Index{}}, math.MaxInt
	}
	next := &view{settled: old.settled, replaced: make(chan struct{})}
	var roles []rbac.Change[rbac.Role]
	for i := range next.roles {
		next.roles[i], next.bindings[i] = a.roles[i].Now(), a.bindings[i].Now()
		next.from[i].revision, next.from[i].changed = next.roles[i].Reached()
		next.from[2+i].revision, next.from[2+i].changed = next.bindings[i].Reached()
		changes.Difference(old.roles[i], next.roles[i], func(was, is *rbac.Role) {
			roles = append(roles, rbac.Change[rbac.Role]{Was: was, Is: is})
		})
		changes.Difference(old.bindings[i], next.bindings[i], a.backlog.add)
	}
	next.Index = old.Update(roles, a.backlog.take(cost))
	next.behind = a.backlog.namespaces()
	if next.behind == nil {
		next.settled = next.from
	}
	a.current.Store(next)
	if old.replaced == nil {
		close(a.ready)
	} else {
		close(old.replaced)
	}
	return next.behind != nil
}

// Authorize implements services.Authz. It allows by the current index, or by one that is not before the revision of
// the request, and denies only after the index includes everything stored before the request, so that new grants can
// be used at once.
func (a *roleBased) Authorize(ctx context.Context, q services.Attributes) (services.Decision, error) {
	now := a.current.Load()
	decision := a.decide(now, q)
	if decision.Allowed && decision.Revision < q.NotBefore {
		now = a.await(ctx, q.NotBefore, q.Namespace)
		decision = a.decide(now, q)
	}
	if decision.Allowed {
		return decision, nil
	}
	if newer := a.catchUp(ctx, now, q.Namespace); newer != now {
		return a.decide(newer, q), nil
	}
	return decision, nil
}

// AuthorizeBatch implements services.AuthzBatch. The index catches up once for all denials.
func (a *roleBased) AuthorizeBatch(ctx context.Context, requests []services.Attributes) ([]services.AuthzResult, error) {
	now, caughtUp := a.current.Load(), false
	if all := namespaces(requests); a.reached(now, all...) < notBefore(requests) {
		now = a.await(ctx, notBefore(requests), all...)
	}
	results := make([]services.AuthzResult, len(requests))
	for i, q := range requests {
		if results[i].Err = ctx.Err(); results[i].Err != nil {
			continue
		}
		results[i].Decision = a.decide(now, q)
		if !results[i].Allowed && !caughtUp {
			caughtUp = true
			if newer := a.catchUp(ctx, now, namespaces(requests)...); newer != now {
				now = newer
				results[i].Decision = a.decide(now, q)
			}
		}
	}
	return results, nil
}

// notBefore returns the revision that all permissions of a batch must include.
func notBefore(requests []services.Attributes) (revision int64) {
	for i := range requests {
		revision = max(revision, requests[i].NotBefore)
	}
	return revision
}

func namespaces(of []services.Attributes) []string {
	list := make([]string, len(of))
	for i := range of {
		list[i] = of[i].Namespace
	}
	return list
}

// decide decides by a view, with the revision until which the decision is right. Roles and bindings that cannot be
// read permit nothing; a refusal names one of them.
func (a *roleBased) decide(v *view, q services.Attributes) services.Decision {
	decision := v.Authorize(q)
	decision.Revision = a.reached(v, q.Namespace)
	if !decision.Allowed && q.User.Name != services.UserAnonymous {
		if err := v.unreadable(q.Namespace); err != nil {
			decision.Reason = "RBAC: " + err.Error()
			decision.EvaluationError = join(decision.EvaluationError, err.Error())
		}
	}
	return decision
}

// unreadable returns the error of a role or binding that counts in a namespace and cannot be read; nil if there is none.
func (v *view) unreadable(namespace string) error {
	if err := cmp.Or(v.roles[0].Unreadable(""), v.bindings[0].Unreadable("")); err != nil || namespace == "" {
		return err
	}
	return cmp.Or(v.roles[1].Unreadable(namespace), v.bindings[1].Unreadable(namespace))
}

// catchUp returns a view that includes everything stored so far that counts in some namespaces. If
// that takes too long, it returns the newest one.
func (a *roleBased) catchUp(ctx context.Context, now *view, namespaces ...string) *view {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	revision, err := a.store.Revision(ctx, resource.GroupResource{})
	if err != nil || a.reached(now, namespaces...) >= revision {
		return now
	}
	return a.await(ctx, revision, namespaces...)
}

// await returns a view that includes what is stored through a revision and counts in some namespaces. If that takes too
// long, it returns the newest one. It is woken by the mirrors and by new views.
func (a *roleBased) await(ctx context.Context, revision int64, namespaces ...string) *view {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	for _, waitFor := range []func(context.Context, int64) error{
		a.roles[0].WaitFor, a.roles[1].WaitFor, a.bindings[0].WaitFor, a.bindings[1].WaitFor,
	} {
		if waitFor(ctx, revision) != nil {
			return a.current.Load()
		}
	}
	for {
		now := a.current.Load()
		if a.reached(now, namespaces...) >= revision {
			return now
		}
		select {
		case <-now.replaced:
		case <-ctx.Done():
			return now
		}
	}
}

// Rules implements services.Authz.
func (a *roleBased) Rules(_ context.Context, r services.RulesRequest) (services.Rules, error) {
	now := a.current.Load()
	rules := now.Rules(r)
	if err := now.unreadable(r.Namespace); err != nil {
		rules.Incomplete, rules.EvaluationError = true, join(rules.EvaluationError, err.Error())
	}
	return rules, nil
}

// byRole decides by the rules of one cluster role, whatever it is bound to.
func (a *roleBased) byRole(role string) func(context.Context, services.Attributes) services.Decision {
	return func(_ context.Context, q services.Attributes) services.Decision {
		return a.current.Load().AuthorizeByRole(rbac.Ref{Name: role}, q)
	}
}

var (
	_ services.Authz      = (*roleBased)(nil)
	_ services.AuthzBatch = (*roleBased)(nil)
)
