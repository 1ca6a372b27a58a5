package live

import (
	"context"
	"slices"
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
	// workers is how many identities are authenticated, or batches of questions sent, at a time.
	workers = 4
	// patience bounds a call of authn or authz.
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
// policy yet. Identities that authn must be called about come last, since that may take long.
func (q *Requests) check(ctx context.Context, now time.Time) bool {
	due := q.due(now)
	current := q.checkGroups(ctx, due.known, now)
	return q.checkGroups(ctx, due.unknown, now) && current
}

// checkGroups checks identities: authn is called about each, as far as that is due, and then authz
// about all of them together.
func (q *Requests) checkGroups(ctx context.Context, groups [][]*identity, now time.Time) bool {
	each(groups, func(group []*identity) {
		q.renew(ctx, group[0], now)
		for _, i := range group[1:] {
			q.confirm(group[0], i, now)
			q.renew(ctx, i, now)
		}
	})
	var behind atomic.Bool
	each(slices.Collect(slices.Chunk(q.dueQuestions(groups, now), services.MaxAuthzBatch)), func(questions []dueQuestion) {
		if !q.authorize(ctx, questions, now) {
			behind.Store(true)
		}
	})
	return !behind.Load()
}

// dueGroups are the identities that must be authenticated or authorized again, in groups: those
// that come from the same files are one, since what authn says of the first holds for all
// while the files are the same.
type dueGroups struct {
	known   [][]*identity // which need no authentication
	unknown [][]*identity
}

// due returns what is due.
func (q *Requests) due(now time.Time) (due dueGroups) {
	q.mu.Lock()
	defer q.mu.Unlock()
	policy, bySource := q.policy.Load(), map[string]int{}
	for _, i := range q.identities {
		switch source := i.result.Credential.Source; {
		case i.expired(now):
			due.known = append(due.known, []*identity{i})
		case source != "" && !i.stale && i.unauthenticated(now):
			at, ok := bySource[source]
			if !ok {
				at = len(due.unknown)
				bySource[source], due.unknown = at, append(due.unknown, nil)
			}
			due.unknown[at] = append(due.unknown[at], i)
		case i.unauthenticated(now):
			due.unknown = append(due.unknown, []*identity{i})
		case i.asksAuthz(policy, now):
			due.known = append(due.known, []*identity{i})
		}
	}
	return due
}

// each calls visit with each of a list, workers at a time.
func each[T any](list []T, visit func(T)) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(workers, len(list)) {
		done.Go(func() {
			for n := next.Add(1); n <= int64(len(list)); n = next.Add(1) {
				visit(list[n-1])
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

// renew authenticates an identity, as far as that is due.
func (q *Requests) renew(ctx context.Context, i *identity, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q.mu.Lock()
	expired, ask, credentials := i.expired(now), i.unauthenticated(now), i.credentials
	i.stale, i.changed = false, true // a change from now on sets stale again
	q.mu.Unlock()
	switch {
	case expired:
		q.end(i, nil, services.Unauthorized(""))
	case ask:
		credentials.NotOlderThan = q.reached.Load()
		q.authenticate(ctx, i, credentials, now)
	}
}

// authenticate ends the requests of an identity that authn refuses. While authn is unavailable the
// former result holds, until its end.
func (q *Requests) authenticate(ctx context.Context, i *identity, c services.Credentials, now time.Time) {
	a, err := q.config.Authn.Authenticate(ctx, c)
	if services.IsReason(err, services.ReasonUnauthorized) {
		q.end(i, nil, services.AsStatus(err))
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		i.stale = true // until the next tick
		q.config.Log.DebugContext(ctx, "authentication of open requests failed", "user", i.result.User.Name, "error", err)
		return
	}
	q.bound.remove(i.result.Credential.Objects, i)
	i.update(a, now)
	if q.identities[i.key] == i {
		q.bound.add(a.Credential.Objects, i)
	}
}

// dueQuestion is a copy of a question of an identity that is due.
type dueQuestion struct {
	identity *identity
	of       *question
	services.Attributes
}

// dueQuestions returns those of all identities.
func (q *Requests) dueQuestions(groups [][]*identity, now time.Time) (list []dueQuestion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	policy := q.policy.Load()
	for _, group := range groups {
		for _, i := range group {
			for _, one := range i.questions {
				if one.due(policy, now) {
					list = append(list, dueQuestion{i, one, one.Attributes})
				}
			}
		}
	}
	return list
}

// authorize asks authz about questions and ends the requests that are no longer allowed. It returns
// false if some are allowed by an older policy than the newest known one.
func (q *Requests) authorize(ctx context.Context, questions []dueQuestion, now time.Time) (current bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	requests := make([]services.Attributes, len(questions))
	for n := range questions {
		requests[n] = questions[n].Attributes
	}
	current = true
	for n, result := range services.AuthorizeAll(ctx, q.config.Authz, requests) {
		if result.Err == nil && !result.Allowed {
			q.end(questions[n].identity, questions[n].of, q.config.Forbidden(requests[n], result.Decision))
			continue
		}
		current = q.allowed(ctx, questions[n], result, now) && current
	}
	return current
}

// allowed keeps the requests that a question is about. It returns false if authz does not know the
// newest policy yet, or has not decided.
func (q *Requests) allowed(ctx context.Context, about dueQuestion, result services.AuthzResult, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	about.identity.changed = true
	if result.Err != nil {
		q.config.Log.DebugContext(ctx, "authorization of open requests failed", "user", about.User.Name, "error", result.Err)
		about.of.at = now
		return false
	}
	if about.of.User.Equal(about.User) {
		about.of.revision, about.of.at = result.Revision, now
	}
	return result.Revision <= 0 || result.Revision >= q.policy.Load()
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
		q.config.Log.Info("ended requests that are no longer allowed", "user", user, "requests", len(ending), "code", why.Code)
	}
}
