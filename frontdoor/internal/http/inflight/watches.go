package inflight

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
)

// Watches limits how many watches are open. They have no seats, but each holds memory until it ends.
type Watches struct {
	share, total, least int
	refused             atomic.Int64

	mu       sync.Mutex
	ordinary int // of all users of class Ordinary
	users    map[string]int
}

const (
	// watchBytes is what a watch takes whose client reads slowly: about 18 KiB, and half of the events that it holds.
	watchBytes = 32 << 10
	// leastShare is the smallest default: controllers of large clusters have more than 10,000 watches.
	leastShare = 1 << 14
)

// WatchShare returns the default share of a user where there is so much memory: the watches that fill a quarter.
func WatchShare(memory int64) int { return int(max(leastShare, memory/4/watchBytes)) }

// NewWatches returns a limit by which one user may have share open watches, and all users of class Ordinary twice as
// many together. A user may always have a hundredth of share, so that others cannot take the last one.
func NewWatches(share int) *Watches {
	return &Watches{share: share, total: 2 * share, least: max(1, share/100), users: map[string]int{}}
}

// Open counts a watch, which Close ends, or returns TooManyRequests (429).
func (w *Watches) Open(who Requester) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.users[who.Name] + 1
	full := who.Class == Ordinary && w.ordinary >= w.total && n > w.least
	switch {
	case who.Class == Exempt:
	case n > w.share:
		w.refused.Add(1)
		return services.TooManyRequests("this user has too many open watches, please try again later")
	case full:
		w.refused.Add(1)
		return services.TooManyRequests("there are too many open watches, please try again later")
	}
	w.users[who.Name] = n
	if who.Class == Ordinary {
		w.ordinary++
	}
	return nil
}

// Close ends a watch that Open has counted for the same requester.
func (w *Watches) Close(who Requester) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if who.Class == Ordinary {
		w.ordinary--
	}
	if w.users[who.Name]--; w.users[who.Name] == 0 {
		delete(w.users, who.Name)
	}
}

// most returns the number of watches of the user who has most.
func (w *Watches) most() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.users {
		n = max(n, of)
	}
	return n
}

// Register registers the metrics.
func (w *Watches) Register(registry *prometheus.Registry) {
	gauge := func(name, help string, value func() int) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
	}
	gauge("portico_watches_per_user_max", "Open watches of the user who has most.", w.most)
	gauge("portico_watches_per_user_limit", "Open watches that one user may have.", func() int { return w.share })
	registry.MustRegister(dropped("watch", func() int64 { return w.refused.Load() }))
}
