package live

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/portico-platform/portico/services"
)

// Identities caches the users of bearer tokens, for as long as authn allows and the objects
// that they are bound to are unchanged. Requests with a client certificate are not cached,
// because their user may depend on headers too.
type Identities struct {
	authn services.Authn
	known *lru.Cache[[sha256.Size]byte, identified]
	bound bonds[[sha256.Size]byte]
	// reached is the revision through which authn must include every change.
	reached atomic.Int64
}

type identified struct {
	services.Authentication
	until time.Time
}

// identitiesKept is the maximum number of entries. The least recently used are evicted.
const identitiesKept = 10_000

// NewIdentities returns an empty cache of the responses of authn.
func NewIdentities(authn services.Authn) *Identities {
	i := &Identities{authn: authn}
	var err error
	i.known, err = lru.NewWithEvict(identitiesKept, func(key [sha256.Size]byte, a identified) {
		i.bound.remove(a.Credential.Objects, key)
	})
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return i
}

// Authenticate implements services.Authn.
func (i *Identities) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	reached := i.reached.Load()
	c.NotOlderThan = max(c.NotOlderThan, reached)
	if c.BearerToken == "" || len(c.Certificates) > 0 || len(c.Audiences) > 0 {
		return i.authn.Authenticate(ctx, c)
	}
	key := sha256.Sum256([]byte(c.BearerToken))
	if known, ok := i.known.Get(key); ok && time.Now().Before(known.until) {
		return known.Authentication, nil
	}
	a, err := i.authn.Authenticate(ctx, c)
	if err != nil || a.CacheFor <= 0 {
		return a, err
	}
	i.known.Remove(key)
	i.bound.add(a.Credential.Objects, key)
	i.known.Add(key, identified{a, time.Now().Add(a.CacheFor)})
	if i.reached.Load() != reached {
		i.known.Remove(key) // what it is bound to may have changed since authn was called
	}
	return a, nil
}

// ObjectsChanged is the changes.Observer of the types that credentials are bound to.
func (i *Identities) ObjectsChanged(revision int64, list []services.Change) {
	reach(&i.reached, revision, list)
	if list == nil {
		i.known.Purge()
	}
	for c := range list {
		for _, key := range i.bound.to(&list[c]) {
			i.known.Remove(key)
		}
	}
}

// Revoked is the changes.Observer of Revocations, which may concern any credentials.
func (i *Identities) Revoked(revision int64, list []services.Change) {
	reach(&i.reached, revision, list)
	i.known.Purge()
}

// reach moves a revision forward. Where following begins again it may also go back: etcd may
// have been restored.
func reach(revision *atomic.Int64, to int64, list []services.Change) {
	if list == nil {
		revision.Store(to)
		return
	}
	for at := revision.Load(); at < to && !revision.CompareAndSwap(at, to); at = revision.Load() {
	}
}

var _ services.Authn = (*Identities)(nil)
