package locate

import (
	"context"
	"sync"
	"time"
)

const (
	// keptFor is how long what was found is used again: changes of endpoints count within it.
	keptFor = time.Second
	// maxKept bounds the references that are remembered.
	maxKept = 1024
)

// Cache is a Locator that reads the objects of a reference at most once a second, for
// callers that ask before each request.
type Cache struct {
	locator Locator
	now     func() time.Time

	mu   sync.Mutex
	kept map[Reference]kept
}

type kept struct {
	addresses []string
	until     time.Time
}

// NewCache returns an empty cache.
func NewCache(l Locator) *Cache {
	return &Cache{locator: l, now: time.Now, kept: map[Reference]kept{}}
}

// One is that of the Locator. Errors are not kept.
func (c *Cache) One(ctx context.Context, r Reference) (string, error) {
	now := c.now()
	c.mu.Lock()
	known, ok := c.kept[r]
	c.mu.Unlock()
	if ok && now.Before(known.until) {
		return pick(known.addresses), nil
	}
	found, err := c.locator.Addresses(ctx, r)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxKept {
		clear(c.kept)
	}
	c.kept[r] = kept{found, now.Add(keptFor)}
	return pick(found), nil
}
