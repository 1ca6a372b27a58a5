package authn

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/revocation"
)

// revokedEvery is how often Revocations are read. Callers that know of a newer change ask for
// its revision, which is then read at once.
const revokedEvery = 500 * time.Millisecond

const (
	// renewPatience bounds a read for a caller, and renewRest is how long no other one is made
	// after it has failed: the revision may be from before etcd was restored.
	renewPatience, renewRest = time.Second, 2 * time.Second
	// orderedFor is how long what was read is not replaced by an older revision. After that,
	// etcd was restored.
	orderedFor = 5 * time.Second
)

// revocations are the stored Revocations. While the store is unavailable those that were read
// last apply.
type revocations struct {
	store   services.Reader
	log     *slog.Logger
	reading sync.Mutex
	resting time.Time // until when callers make no reads; reading is held
	current atomic.Pointer[revoked]
}

// revoked is what was read at one revision.
type revoked struct {
	*revocation.Set
	// specs are those of the set by the names of their objects. Of an object that can no longer be read it is the
	// one that was read last.
	specs map[string]revocation.Spec
	// unread is the error of an object that cannot be read and never could; nil if there is none.
	unread   error
	revision int64
	at       time.Time
}

// run reads Revocations until ctx ends.
func (r *revocations) run(ctx context.Context) error {
	tick := time.NewTicker(revokedEvery)
	defer tick.Stop()
	for {
		if err := r.read(ctx, services.Read{Mode: services.AnyRevision}); err != nil && ctx.Err() == nil {
			r.log.Debug("reading revocations failed", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// check returns Unauthorized (401) if a result is revoked, and Unavailable (503) if no
// Revocations have been read yet. While a Revocation cannot be read of which nothing is known, it may be about
// anybody, and the error is Unreadable (500), which names it, for all but the members of system:masters, who can
// delete or replace it.
func (r *revocations) check(ctx context.Context, a *services.Authentication, notOlderThan int64) error {
	now := r.current.Load()
	if now == nil || now.revision < notOlderThan {
		now = r.renew(ctx, notOlderThan)
	}
	if now == nil {
		return services.Unavailable("revocations are not known yet")
	}
	if by := now.Revokes(a, time.Now()); by != nil {
		r.log.Debug("credentials are revoked", "user", a.User.Name, "reason", by.Reason)
		return services.Unauthorized("")
	}
	if now.unread != nil && !slices.Contains(a.User.Groups, services.GroupMasters) {
		return now.unread
	}
	return nil
}

// renew returns Revocations that include every change through a revision, or those that were
// read last if that fails. Concurrent callers share one read.
func (r *revocations) renew(ctx context.Context, notOlderThan int64) *revoked {
	r.reading.Lock()
	defer r.reading.Unlock()
	if now := r.current.Load(); now != nil && (now.revision >= notOlderThan || time.Now().Before(r.resting)) {
		return now
	}
	ctx, cancel := context.WithTimeout(ctx, renewPatience)
	defer cancel()
	read := services.Read{Mode: services.AnyRevision}
	if notOlderThan > 0 {
		read = services.Read{Mode: services.NotOlderThan, Revision: notOlderThan}
	}
	if err := r.read(ctx, read); err != nil {
		r.resting = time.Now().Add(renewRest)
		r.log.Debug("reading revocations failed", "error", err)
	}
	return r.current.Load()
}

// read lists all Revocations.
func (r *revocations) read(ctx context.Context, read services.Read) error {
	next := &revoked{specs: map[string]revocation.Spec{}}
	known := map[string]revocation.Spec{}
	if now := r.current.Load(); now != nil {
		known = now.specs
	}
	request := services.ListRequest{GroupResource: resource.GroupResource{Group: revocation.Group, Resource: revocation.Resource}, Read: read, WithUnreadable: true}
	revision, err := services.ForEach(ctx, r.store, request, func(o services.Object) error {
		next.add(o, known)
		return nil
	})
	if services.IsReason(err, services.ReasonForbidden) && r.current.Load() == nil {
		r.log.Warn("the store does not permit authn to read revocations: it has an earlier release", "error", err)
		err, next = nil, &revoked{}
	}
	if err != nil {
		return err
	}
	next.Set, next.revision, next.at = revocation.NewSet(slices.Collect(maps.Values(next.specs))), revision, time.Now()
	for {
		before := r.current.Load()
		if before != nil && before.revision > revision && next.at.Sub(before.at) < orderedFor {
			return nil // a read that began earlier, or of a replica of the store that lags
		}
		if r.current.CompareAndSwap(before, next) {
			if next.unread != nil && (before == nil || before.unread == nil) {
				r.log.Error("a revocation cannot be read: only members of system:masters are authenticated", "error", next.unread)
			}
			return nil
		}
	}
}

// add adds an object. Of one that cannot be read the spec that is known counts.
func (r *revoked) add(o services.Object, known map[string]revocation.Spec) {
	err := o.Err()
	var spec revocation.Spec
	if err == nil {
		if spec, err = revocation.Decode(o.JSON); err == nil && spec.Empty() {
			err = services.Unreadable(o.Key, o.Revision, "it does not name what is revoked")
		} else if err != nil {
			err = services.Unreadable(o.Key, o.Revision, err.Error())
		}
	}
	if err == nil {
		r.specs[o.Key.Name] = spec
		return
	}
	if last, ok := known[o.Key.Name]; ok {
		r.specs[o.Key.Name] = last
	} else if r.unread == nil {
		r.unread = err
	}
}
