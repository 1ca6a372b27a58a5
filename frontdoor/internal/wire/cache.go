package wire

import (
	"hash/maphash"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// cache is a cache of encoded forms. A form is only added when it is encoded for the second
// time: most forms are requested once, by a client that lists everything. Each shard has
// two generations. When the young one is full, it replaces the old one; entries that are
// read from the old one are added to the young one. So entries that are not used for a
// generation are dropped, and a read costs no bookkeeping.
type cache struct {
	seed   maphash.Seed
	bytes  int64 // its own limit
	shards [16]shard
}

// cacheKey identifies one form of one object at one revision. The type is part of it
// because the same object has other versions and columns in other types.
type cacheKey struct {
	uid      string
	revision int64
	t        *catalogue.Type
	form     cachedForm
}

type cachedForm uint8

const (
	cachedCells cachedForm = iota
	cachedMessage
	cachedPartialMessage
)

type shard struct {
	mu         sync.Mutex
	limit      int // of young, in bytes
	size       int // of young
	oldSize    int
	young, old map[cacheKey]entry
	seen       seenSet
}

// seenSet records keys by one bit each. Keys can share a bit: an entry that is added too
// early does no harm.
type seenSet struct {
	bits  [1 << 11]uint64
	count int
}

// testAndSet reports whether a key was recorded before, and records it. It starts over when
// a quarter of the bits could be set.
func (a *seenSet) testAndSet(hash uint64) bool {
	word, bit := &a.bits[hash>>6%uint64(len(a.bits))], uint64(1)<<(hash%64)
	if *word&bit != 0 {
		return true
	}
	if a.count++; a.count > len(a.bits)*64/4 {
		*a = seenSet{}
	}
	*word |= bit
	return false
}

type entry struct {
	value any
	size  int
}

// entryOverhead is the approximate size of an entry without its value, in bytes.
const entryOverhead = 160

func newCache(bytes int) *cache {
	c := &cache{seed: maphash.MakeSeed(), bytes: int64(bytes)}
	for i := range c.shards {
		c.shards[i].young = map[cacheKey]entry{}
	}
	c.Bound(c.bytes)
	return c
}

// Bytes returns the approximate size of all entries.
func (c *cache) Bytes() (sum int64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		sum += int64(s.size + s.oldSize)
		s.mu.Unlock()
	}
	return sum
}

// Bound limits the cache further than its own limit, until the next call.
func (c *cache) Bound(bytes int64) {
	limit := int(min(c.bytes, bytes)) / len(c.shards)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.limit = limit / 2
		if s.size+s.oldSize > limit {
			s.old, s.oldSize = nil, 0
		}
		if s.size > limit {
			s.young, s.size = map[cacheKey]entry{}, 0
		}
		s.mu.Unlock()
	}
}

func (c *cache) shard(k cacheKey) *shard {
	return &c.shards[maphash.String(c.seed, k.uid)%uint64(len(c.shards))]
}

func (c *cache) get(k cacheKey) (any, bool) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.young[k]
	if !ok {
		if e, ok = s.old[k]; ok {
			s.add(k, e)
		}
	}
	return e.value, ok
}

// wants reports whether a form that was encoded is to be added: it was encoded before, and its
// object has a UID and revision.
func (c *cache) wants(k cacheKey) bool {
	if k.uid == "" || k.revision == 0 {
		return false
	}
	s, hash := c.shard(k), maphash.Comparable(c.seed, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.testAndSet(hash)
}

// add adds a form, which must not change.
func (c *cache) add(k cacheKey, value any, size int) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(k, entry{value, size + entryOverhead})
}

func (s *shard) add(k cacheKey, e entry) {
	if _, ok := s.young[k]; ok || e.size > s.limit {
		return
	}
	if s.size+e.size > s.limit {
		s.old, s.oldSize = s.young, s.size
		s.young, s.size = map[cacheKey]entry{}, 0
	}
	s.young[k] = e
	s.size += e.size
}
