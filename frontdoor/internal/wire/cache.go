package wire

import (
	"hash/maphash"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// cache keeps made forms while they are hot. What is made for the first time is only
// remembered to have been: most forms of most objects are asked for once, by a client
// that lists everything. Each shard has two generations: a full young one becomes the
// old one, and what is used in the old one becomes young again, so that entries not
// used for a generation go, at no cost per use.
type cache struct {
	seed   maphash.Seed
	shards [16]shard
}

// cacheKey names one form of one object at one revision. The type is part of it
// because versions and columns differ between types of the same object.
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
	size       int
	young, old map[cacheKey]entry
	asked      askedOnce
}

// askedOnce remembers keys by a bit each. Others may share the bit: what is kept too
// early does no harm.
type askedOnce struct {
	bits  [1 << 11]uint64
	count int
}

// again reports whether a key was asked for before, and remembers it. When it has filled
// up, it begins anew.
func (a *askedOnce) again(hash uint64) bool {
	word, bit := &a.bits[hash>>6%uint64(len(a.bits))], uint64(1)<<(hash%64)
	if *word&bit != 0 {
		return true
	}
	if a.count++; a.count > len(a.bits)*64/4 {
		*a = askedOnce{}
	}
	*word |= bit
	return false
}

type entry struct {
	value any
	size  int
}

// entryOverhead is about what an entry costs beside its value.
const entryOverhead = 160

func newCache(bytes int) *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i] = shard{limit: bytes / 2 / len(c.shards), young: map[cacheKey]entry{}}
	}
	return c
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

// put keeps a form from the second time on that it is made.
func (c *cache) put(k cacheKey, value any, size int) {
	s, hash := c.shard(k), maphash.Comparable(c.seed, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.again(hash) {
		s.add(k, entry{value, size + entryOverhead})
	}
}

func (s *shard) add(k cacheKey, e entry) {
	if _, ok := s.young[k]; ok || e.size > s.limit {
		return
	}
	if s.size+e.size > s.limit {
		s.old, s.young, s.size = s.young, map[cacheKey]entry{}, 0
	}
	s.young[k] = e
	s.size += e.size
}
