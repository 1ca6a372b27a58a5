package authfilters

import (
	"context"
	"crypto/sha256"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/portico-platform/portico/services"
)

// Identities caches the users of bearer tokens, for as long as authn allows. Requests
// with a client certificate are not cached, because their user may depend on headers too.
type Identities struct {
	known *lru.Cache[[sha256.Size]byte, identity]
}

type identity struct {
	services.Authentication
	until time.Time
}

// identitiesKept is the maximum number of entries. The least recently used are evicted.
const identitiesKept = 10_000

// NewIdentities returns an empty cache.
func NewIdentities() *Identities {
	known, err := lru.New[[sha256.Size]byte, identity](identitiesKept)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &Identities{known}
}

// authenticate returns the cached user, or calls authn.
func (i *Identities) authenticate(ctx context.Context, authn services.Authn, c services.Credentials) (services.Authentication, error) {
	if c.BearerToken == "" || len(c.Certificates) > 0 {
		return authn.Authenticate(ctx, c)
	}
	key := sha256.Sum256([]byte(c.BearerToken))
	if known, ok := i.known.Get(key); ok && time.Now().Before(known.until) {
		return known.Authentication, nil
	}
	a, err := authn.Authenticate(ctx, c)
	if err == nil && a.CacheFor > 0 {
		i.known.Add(key, identity{a, time.Now().Add(a.CacheFor)})
	}
	return a, err
}
