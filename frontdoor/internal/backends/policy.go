package backends

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/monotonic"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// policyPatience bounds the wait for authz, or for the bus. policyPause is the pause before an authz is called
	// again that does not wait itself, as those of earlier versions do not.
	policyPatience = services.MaxAuthzWait
	policyPause    = 2 * time.Millisecond
	// policyRest is how long writes do not wait after one of them has waited without success.
	policyRest = 10 * time.Second
)

// Policy has the newest known revision of a role or binding.
type Policy struct {
	types []resource.GroupResource
	heads *changes.Heads
	// written is the revision of the newest one that this front door has written itself.
	written atomic.Int64
	// resting is until when writes do not wait, as monotonic.Now.
	resting atomic.Int64
}

func newPolicy(heads *changes.Heads, types []resource.GroupResource) *Policy {
	p := &Policy{types: types, heads: heads}
	heads.Observe(func(_ int64, list []services.Change) {
		if list == nil { // following begins again: etcd may have been restored
			p.written.Store(0)
		}
	})
	return p
}

// Newest returns the revision that a permission must include.
func (p *Policy) Newest() int64 { return max(p.written.Load(), p.heads.Newest()) }

// Unchanged reports whether no role or binding has changed after a revision.
func (p *Policy) Unchanged(since int64) bool {
	return p.written.Load() <= since && p.heads.Unchanged(since)
}

// current is an Authz whose permissions include every change that the front door knows of, so that
// a right that was withdrawn before a request is not used by it.
type current struct {
	services.Authz
	newest func() int64
}

// Authorize implements services.Authz. Authz waits until it is up to date; if it lags for too long, its answer counts.
func (c current) Authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	newest, deadline := c.newest(), time.Now().Add(policyPatience)
	for a.NotBefore = newest; ; {
		d, err := c.Authz.Authorize(ctx, a)
		if err != nil || !d.Allowed || d.Revision <= 0 || d.Revision >= newest || time.Now().After(deadline) {
			return d, err
		}
		if !retry.Pause(ctx, policyPause) {
			return d, ctx.Err()
		}
	}
}

// AuthorizeBatch implements services.AuthzBatch. Only permissions of an authz that lags are
// requested again.
func (c current) AuthorizeBatch(ctx context.Context, requests []services.Attributes) ([]services.AuthzResult, error) {
	newest, deadline := c.newest(), time.Now().Add(policyPatience)
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].NotBefore = newest
	}
	results := services.AuthorizeAll(ctx, c.Authz, requests)
	for {
		var lagging []int
		var again []services.Attributes
		for i, r := range results {
			if r.Err == nil && r.Allowed && r.Revision > 0 && r.Revision < newest {
				lagging, again = append(lagging, i), append(again, requests[i])
			}
		}
		if len(again) == 0 || time.Now().After(deadline) {
			return results, nil
		}
		if !retry.Pause(ctx, policyPause) {
			return nil, ctx.Err()
		}
		for n, r := range services.AuthorizeAll(ctx, c.Authz, again) {
			results[lagging[n]] = r
		}
	}
}

// policyStore is a Store that knows of the roles and bindings that are written through it.
type policyStore struct {
	services.Store
	*Policy
}

// Create implements services.Store.
func (s policyStore) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	o, err := s.Store.Create(ctx, r)
	return o, s.wrote(ctx, o, err)
}

// Update implements services.Store.
func (s policyStore) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	o, err := s.Store.Update(ctx, r)
	return o, s.wrote(ctx, o, err)
}

// Delete implements services.Store.
func (s policyStore) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	o, err := s.Store.Delete(ctx, r)
	return o, s.wrote(ctx, o, err)
}

// errSilentBus ends the wait for a write on the bus.
var errSilentBus = errors.New("the bus has not delivered a change in time")

// wrote remembers a write, and waits until this front door has it from the bus: then the others
// have it, too, unless they are cut off.
func (s policyStore) wrote(ctx context.Context, o services.Object, err error) error {
	if err != nil || !slices.Contains(s.types, o.Key.GroupResource) {
		return err
	}
	for at := s.written.Load(); at < o.Revision && !s.written.CompareAndSwap(at, o.Revision); at = s.written.Load() {
	}
	if monotonic.Now() < s.resting.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, policyPatience, errSilentBus)
	defer cancel()
	if s.heads.AwaitChange(ctx, o.Revision-1) != nil && context.Cause(ctx) == errSilentBus {
		s.resting.Store(monotonic.Now() + int64(policyRest))
	}
	return nil
}

var (
	_ services.Authz      = current{}
	_ services.AuthzBatch = current{}
	_ services.Store      = policyStore{}
)
