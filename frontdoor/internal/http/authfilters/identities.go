package authfilters

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/portico-platform/portico/services"
)

// identities remembers who a bearer token belongs to, for as long as authn allows.
// Requests that come with a client certificate are not remembered: headers may
// count for them too.
type identities struct {
	mu    sync.RWMutex
	known map[[sha256.Size]byte]identity
}

type identity struct {
	services.Authentication
	until time.Time
}

// identitiesKept bounds the memory; beyond it everything is asked again.
const identitiesKept = 10_000

// authenticate asks authn, unless it knows the answer.
func (i *identities) authenticate(ctx context.Context, authn services.Authn, c services.Credentials) (services.Authentication, error) {
	if c.BearerToken == "" || len(c.Certificates) > 0 {
		return authn.Authenticate(ctx, c)
	}
	key := sha256.Sum256([]byte(c.BearerToken))
	i.mu.RLock()
	known, ok := i.known[key]
	i.mu.RUnlock()
	if ok && time.Now().Before(known.until) {
		return known.Authentication, nil
	}
	a, err := authn.Authenticate(ctx, c)
	if err == nil && a.CacheFor > 0 {
		i.mu.Lock()
		defer i.mu.Unlock()
		if len(i.known) >= identitiesKept {
			clear(i.known)
		}
		if i.known == nil {
			i.known = map[[sha256.Size]byte]identity{}
		}
		i.known[key] = identity{a, time.Now().Add(a.CacheFor)}
	}
	return a, err
}
