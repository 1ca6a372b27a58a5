package live

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
)

const (
	// unkeptPeriod is how often a decision is requested again that depends on more than roles
	// and bindings, such as one of the modes Node and Webhook. It is also the least period
	// of authentication.
	unkeptPeriod = time.Second
	// fullPeriod is how often everything is requested again, for the time in which the front
	// door learns of no changes.
	fullPeriod = 30 * time.Second
	// slack makes a period end with the tick that is nearest to its end.
	slack = 100 * time.Millisecond
)

// identity is the caller of requests with the same credentials: it is authenticated, and what
// its requests have in common is authorized, once for all of them.
type identity struct {
	key         [sha256.Size]byte
	credentials services.Credentials
	result      services.Authentication
	at          time.Time // of result
	stale       bool      // authn must be called again
	requests    map[*Request]struct{}
	questions   map[string]*question
	// oldest is the least revision of a decision, and next when one is due by its period. Both
	// are computed from the questions after one has changed.
	changed bool
	oldest  int64
	next    time.Time
}

// question is a question to authz, and the requests that it allows.
type question struct {
	services.Attributes
	own      bool
	revision int64 // of the decision
	at       time.Time
	requests map[*Request]struct{}
}

// identityKey identifies credentials.
func identityKey(c services.Credentials) (key [sha256.Size]byte) {
	h := sha256.New()
	add := func(part []byte) {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}
	add([]byte(c.BearerToken))
	add([]byte(c.Path))
	for _, certificate := range c.Certificates {
		add(certificate)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		add([]byte(name))
		for _, value := range c.Headers[name] {
			add([]byte(value))
		}
	}
	h.Sum(key[:0])
	return key
}

// questionKey identifies a question about an identity's requests.
func (d *decided) key() string {
	parts := []string{d.Verb, d.Path, d.Group, d.Version, d.Resource, d.Subresource, d.Namespace, d.Name, d.FieldSelector, d.LabelSelector}
	if !d.own {
		parts = append(append(parts, d.User.Name, d.User.UID), d.User.Groups...)
		for _, name := range slices.Sorted(maps.Keys(d.User.Extra)) {
			parts = append(append(parts, "", name), d.User.Extra[name]...)
		}
	}
	return strings.Join(parts, "\x00")
}

func (i *identity) add(r *Request) {
	now := time.Now()
	i.changed = true
	i.requests[r] = struct{}{}
	for _, d := range r.decided {
		key := d.key()
		one, ok := i.questions[key]
		if !ok {
			one = &question{Attributes: d.Attributes, own: d.own, revision: d.revision, at: now, requests: map[*Request]struct{}{}}
			i.questions[key] = one
		}
		if d.own {
			one.User = i.result.User
		}
		one.revision = min(one.revision, d.revision)
		one.requests[r] = struct{}{}
	}
}

func (i *identity) remove(r *Request) {
	i.changed = true
	delete(i.requests, r)
	for _, d := range r.decided {
		key := d.key()
		one, ok := i.questions[key]
		if !ok {
			continue
		}
		if delete(one.requests, r); len(one.requests) == 0 {
			delete(i.questions, key)
		}
	}
}

// forget makes every decision one of an older policy.
func (i *identity) forget() {
	i.changed = true
	for _, one := range i.questions {
		if one.revision > 0 && one.revision < math.MaxInt64 {
			one.revision = 1
		}
	}
}

// update takes a new result of authn. Another user is authorized again.
func (i *identity) update(a services.Authentication, now time.Time) {
	if !a.User.Equal(i.result.User) {
		for _, one := range i.questions {
			if one.own {
				one.User, one.revision, i.changed = a.User, 1, true
			}
		}
	}
	i.result, i.at = a, now
}

// expired reports whether the credentials have ended by themselves.
func (i *identity) expired(now time.Time) bool {
	expires := i.result.Credential.Expires
	return !expires.IsZero() && !now.Before(expires)
}

// unauthenticated reports whether authn must be called.
func (i *identity) unauthenticated(now time.Time) bool {
	period := max(i.result.CacheFor, unkeptPeriod)
	if i.result.CacheFor <= 0 || len(i.result.Credential.Objects) > 0 {
		period = fullPeriod // what ends them is followed
	}
	return i.stale || now.Sub(i.at) >= period-slack
}

// asksAuthz reports whether authz must be called about a request.
func (i *identity) asksAuthz(policy int64, now time.Time) bool {
	if i.changed {
		i.changed, i.oldest, i.next = false, math.MaxInt64, now.Add(fullPeriod)
		for _, one := range i.questions {
			if one.revision > 0 {
				i.oldest = min(i.oldest, one.revision)
			}
			if due, ok := one.dueAt(); ok && due.Before(i.next) {
				i.next = due
			}
		}
	}
	return i.oldest < policy || !now.Before(i.next)
}

// dueAt returns when authz must be called again although policy has not changed; ok is false for
// a decision that depends on nothing stored.
func (a *question) dueAt() (at time.Time, ok bool) {
	switch {
	case a.revision == math.MaxInt64:
		return at, false
	case a.revision <= 0:
		return a.at.Add(unkeptPeriod - slack), true
	}
	return a.at.Add(fullPeriod), true
}

// due reports whether authz must be called again.
func (a *question) due(policy int64, now time.Time) bool {
	at, ok := a.dueAt()
	return ok && (a.revision > 0 && a.revision < policy || !now.Before(at))
}
