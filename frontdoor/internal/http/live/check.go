package live

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
)

const (
	// least is the shortest pause between two checks, and longest the pause before authz is
	// called again that does not know the newest policy yet. Changes in the meantime are checked
	// together.
	least, longest = 50 * time.Millisecond, 500 * time.Millisecond
	// workers is how many identities are checked at a time.
	workers = 4
	// patience bounds the check of one identity.
	patience = 5 * time.Second
)

// Run checks the requests until ctx ends: when policy or identities have changed, and once a
// second those that depend on something else. It pauses for as long as a check has taken.
func (q *Requests) Run(ctx context.Context) error {
	tick := time.NewTicker(unkeptPeriod)
	defer tick.Stop()
	var retry <-chan time.Time // while authz lags
	for lag := least; ; {
		select {
		case <-q.changed:
		case <-tick.C:
		case <-retry:
		case <-ctx.Done():
			return nil
		}
		began := time.Now()
		if retry = nil; q.check(ctx, began) {
			lag = least
		} else {
			retry, lag = time.After(lag), min(2*lag, longest)
		}
		rest := time.NewTimer(max(least, time.Since(began)))
		select {
		case <-rest.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// check asks about everything that is due. It returns false if authz does not know the newest
// policy yet.
func (q *Requests) check(ctx context.Context, now time.Time) bool {
	var behind atomic.Bool
	each(q.due(now), func(group []*identity) {
		first := group[0]
		q.checkOne(ctx, first, now, &behind)
		for _, i := range group[1:] {
			q.confirm(first, i, now)
			q.checkOne(ctx, i, now, &behind)
		}
	})
	return !behind.Load()
}

// due returns the identities that must be authenticated or authorized again, in groups: those
// that come from the same files are one, since what authn says of the first holds for all
// while the files are the same.
func (q *Requests) due(now time.Time) (groups [][]*identity) {
	q.mu.Lock()
	defer q.mu.Unlock()
	policy, bySource := q.policy.Load(), map[string]int{}
	for _, i := range q.identities {
		switch source := i.result.Credential.Source; {
		case source != "" && !i.stale && i.unauthenticated(now):
			at, ok := bySource[source]
			if !ok {
				at = len(groups)
				bySource[source], groups = at, append(groups, nil)
			}
			groups[at] = append(groups[at], i)
		case i.expired(now) || i.unauthenticated(now) || i.asksAuthz(policy, now):
			groups = append(groups, []*identity{i})
		}
	}
	return groups
}

// each calls visit with each group, workers at a time.
func each(groups [][]*identity, visit func([]*identity)) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(workers, len(groups)) {
		done.Go(func() {
			for n := next.Add(1); n <= int64(len(groups)); n = next.Add(1) {
				visit(groups[n-1])
			}
		})
	}
	done.Wait()
}

// confirm makes a result as new as that of another identity, if that came from the same files.
func (q *Requests) confirm(by, i *identity, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if by.at.Equal(now) && by.result.Credential.Source == i.result.Credential.Source {
		i.at = now
	}
}

// checkOne authenticates an identity and authorizes its requests, as far as that is due.
func (q *Requests) checkOne(ctx context.Context, i *identity, now time.Time, behind *atomic.Bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q.mu.Lock()
	expired, ask, credentials := i.expired(now), i.unauthenticated(now), i.credentials
	i.stale, i.changed = false, true // a change from now on sets stale again
	q.mu.Unlock()
	if expired {
		q.end(i, nil, services.Unauthorized(""))
		return
	}
	if ask {
		credentials.NotOlderThan = q.reached.Load()
		if !q.authenticate(ctx, i, credentials, now) {
			return
		}
	}
	for _, one := range q.dueQuestions(i, now) {
		if !q.authorize(ctx, i, one, now) {
			behind.Store(true)
		}
	}
}

// authenticate returns false if there is no new result. While authn is unavailable the former
// one holds, until its end.
func (q *Requests) authenticate(ctx context.Context, i *identity, c services.Credentials, now time.Time) bool {
	a, err := q.config.Authn.Authenticate(ctx, c)
	if services.IsReason(err, services.ReasonUnauthorized) {
		q.end(i, nil, services.AsStatus(err))
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		i.stale = true // until the next tick
		q.config.Log.DebugContext(ctx, "authentication of open requests failed", "user", i.result.User.Name, "error", err)
		return true
	}
	q.bound.remove(i.result.Credential.Objects, i)
	i.update(a, now)
	if q.identities[i.key] == i {
		q.bound.add(a.Credential.Objects, i)
	}
	return true
}

// dueQuestion is a copy of a question that is due.
type dueQuestion struct {
	of *question
	services.Attributes
}

// dueQuestions returns those of an identity.
func (q *Requests) dueQuestions(i *identity, now time.Time) (list []dueQuestion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	policy := q.policy.Load()
	for _, one := range i.questions {
		if one.due(policy, now) {
			list = append(list, dueQuestion{one, one.Attributes})
		}
	}
	return list
}

// authorize ends the requests that a question is about unless they are allowed. It returns
// false if they are allowed by an older policy than the newest known one.
func (q *Requests) authorize(ctx context.Context, i *identity, about dueQuestion, now time.Time) bool {
	d, err := q.config.Authz.Authorize(ctx, about.Attributes)
	if err == nil && !d.Allowed {
		q.end(i, about.of, q.config.Forbidden(about.Attributes, d))
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i.changed = true
	if err != nil {
		q.config.Log.DebugContext(ctx, "authorization of open requests failed", "user", about.User.Name, "error", err)
		about.of.at = now
		return false
	}
	if sameUser(about.of.User, about.User) {
		about.of.revision, about.of.at = d.Revision, now
	}
	return d.Revision <= 0 || d.Revision >= q.policy.Load()
}

// end ends the requests of an identity, or only those that a question is about.
func (q *Requests) end(i *identity, about *question, why *services.Status) {
	q.mu.Lock()
	ending, user := map[*Request]struct{}{}, i.result.User.Name
	i.stale = i.stale || about == nil // for requests that are opened before these are closed
	of := i.requests
	if about != nil {
		of = about.requests
	}
	for r := range of {
		ending[r] = struct{}{}
	}
	for r := range ending {
		i.remove(r)
	}
	q.mu.Unlock()
	for r := range ending {
		r.end(why)
	}
	q.ended.WithLabelValues(strconv.Itoa(int(why.Code))).Add(float64(len(ending)))
	if len(ending) > 0 {
		q.config.Log.Info("requests ended that are no longer allowed", "user", user, "requests", len(ending), "code", why.Code)
	}
}
