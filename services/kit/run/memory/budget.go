package memory

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Cache is memory that a service can do without, at a price in time.
type Cache interface {
	// Bytes returns the approximate size.
	Bytes() int64
	// Bound limits the size until the next call, also when the cache is larger now. The
	// cache keeps its own limit if that is lower.
	Bound(bytes int64)
}

// Budget bounds the sum of all caches of a process. They may exceed it for a few seconds.
type Budget struct {
	bytes int64
	limit func() (total, free int64)

	mu     sync.Mutex
	caches []named
}

type named struct {
	name  string
	cache Cache
}

const (
	// share is the part of the machine's or the control group's memory that is the default
	// budget, which is at least leastBudget and at most mostBudget.
	share       = 16
	leastBudget = 32 << 20
	mostBudget  = 256 << 20
	// Below a tenth of free memory, caches keep a quarter of the budget.
	scarce, scarceShare = 10, 4
)

// NewBudget returns a budget of this many bytes; 0 means the default. Its metrics are
// registered unless metrics is nil.
func NewBudget(bytes int64, metrics *prometheus.Registry) *Budget {
	return newBudget(bytes, metrics, systemMemory)
}

func newBudget(bytes int64, metrics *prometheus.Registry, limit func() (total, free int64)) *Budget {
	if bytes == 0 {
		total, _ := limit()
		bytes = min(max(total/share, leastBudget), mostBudget)
	}
	b := &Budget{bytes: bytes, limit: limit}
	if metrics != nil {
		metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portico_memory_budget_bytes",
			Help: "Limit on the sum of all caches."}, func() float64 { return float64(b.bytes) }), cacheSizes{b},
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portico_memory_limit_bytes",
				Help: "Memory of the machine, or of the control group if that has less."}, func() float64 { return float64(b.Limit()) }))
	}
	return b
}

// Add registers a cache by a name that is unique in the process. A nil Budget does not bound it.
func (b *Budget) Add(name string, c Cache) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caches = append(b.caches, named{name, c})
}

// Limit returns the memory of the machine, or of the control group if that has less; 0 if it is not known, or
// for a nil Budget.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	total, _ := b.limit()
	return total
}

// enforce gives each cache what it uses and the rest of the budget, if all fit into it, and
// otherwise an equal share; what small caches leave of theirs is shared by the others.
func (b *Budget) enforce() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.bytes
	if total, free := b.limit(); total > 0 && free < total/scarce {
		left /= scarceShare
	}
	type use struct {
		Cache
		bytes int64
	}
	uses, sum := make([]use, len(b.caches)), int64(0)
	for i, c := range b.caches {
		uses[i] = use{c.cache, c.cache.Bytes()}
		sum += uses[i].bytes
	}
	if sum <= left {
		for _, u := range uses {
			u.Bound(u.bytes + left - sum)
		}
		return
	}
	slices.SortFunc(uses, func(a, b use) int { return cmp.Compare(a.bytes, b.bytes) })
	for i, u := range uses {
		part := left / int64(len(uses)-i)
		u.Bound(part)
		left -= min(u.bytes, part)
	}
}

// cacheSizes collects the sizes of the caches.
type cacheSizes struct{ *Budget }

var cacheBytes = prometheus.NewDesc("portico_cache_bytes", "Approximate size of a cache in memory.", []string{"cache"}, nil)

// Describe implements prometheus.Collector.
func (s cacheSizes) Describe(to chan<- *prometheus.Desc) { to <- cacheBytes }

// Collect implements prometheus.Collector.
func (s cacheSizes) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.caches {
		to <- prometheus.MustNewConstMetric(cacheBytes, prometheus.GaugeValue, float64(c.cache.Bytes()), c.name)
	}
}
