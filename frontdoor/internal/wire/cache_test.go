package wire

import (
	"fmt"
	"testing"
)

// TestCacheIsBounded fills the cache many times over: entries in constant use stay, and the
// size stays within the limit.
func TestCacheIsBounded(t *testing.T) {
	const bound = 1 << 20
	c := newCache(bound)
	used := cacheKey{uid: "used", revision: 1}
	put(c, used, "value", 100)
	if _, ok := c.get(used); ok {
		t.Error("what was made once is kept already")
	}
	put(c, used, "value", 100)
	for i := range 20_000 {
		other := cacheKey{uid: fmt.Sprint(i), revision: 1}
		put(c, other, "other", 1000)
		put(c, other, "other", 1000)
		if value, ok := c.get(used); !ok || value != "value" {
			t.Fatalf("what is hot is gone after %d others", i)
		}
	}
	total := 0
	for i := range c.shards {
		for _, generation := range []map[cacheKey]entry{c.shards[i].young, c.shards[i].old} {
			for _, e := range generation {
				total += e.size
			}
		}
	}
	if total > bound || total < bound/3 {
		t.Errorf("%d bytes are kept, of at most %d", total, bound)
	}
	if _, ok := c.get(cacheKey{uid: "0", revision: 1}); ok {
		t.Error("what was used once, long ago, is still there")
	}
	huge := cacheKey{uid: "huge"}
	put(c, huge, "value", bound)
	put(c, huge, "value", bound)
	if _, ok := c.get(huge); ok {
		t.Error("what exceeds the bound is kept")
	}
}

func TestCacheGivesMemoryBack(t *testing.T) {
	const own = 1 << 20
	c := newCache(own)
	fill := func() {
		for i := range 5000 {
			for range 2 {
				put(c, cacheKey{uid: fmt.Sprint(i), revision: 1}, "value", 1000)
			}
		}
	}
	fill()
	for _, x := range []struct{ bound, want int64 }{{own / 4, own / 4}, {0, 0}, {10 * own, own}} {
		c.Bound(x.bound)
		if got := c.Bytes(); got > x.want {
			t.Errorf("bounded by %d: %d bytes", x.bound, got)
		}
		if fill(); c.Bytes() > x.want || c.Bytes() < x.want/3 {
			t.Errorf("bounded by %d and filled: %d bytes, want %d", x.bound, c.Bytes(), x.want)
		}
		sum := int64(0)
		for i := range c.shards {
			for _, generation := range []map[cacheKey]entry{c.shards[i].young, c.shards[i].old} {
				for _, e := range generation {
					sum += int64(e.size)
				}
			}
		}
		if sum != c.Bytes() {
			t.Errorf("%d bytes are held, %d counted", sum, c.Bytes())
		}
	}
}

// put adds a form as the encoder does.
func put(c *cache, k cacheKey, value any, size int) {
	if c.wants(k) {
		c.add(k, value, size)
	}
}
