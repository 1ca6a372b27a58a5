// Package fairness decides which request is served next when more arrive than the front door
// serves at a time. FlowSchemas classify requests; each PriorityLevelConfiguration has a part
// of the seats and, within it, queues that are served fairly. A level that needs fewer seats
// lends some to others. It serves "Limits" of the specification.
package fairness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/services"
)

// Config configures Shares.
type Config struct {
	// Seats is the number of requests that all front doors together serve at a time.
	Seats int
	// Wait is the maximum time that a request waits in a queue.
	Wait time.Duration
}

// Shares holds the levels and their requests.
type Shares struct {
	Config
	table   atomic.Pointer[table]
	stalled stalls
	kinds   [2]kindCounts // of reads, of writes

	pressure pressure

	// mu is held while the configuration or the limits of levels change.
	mu       sync.Mutex
	levels   map[string]*level
	replicas int
}

// kindCounts counts the requests of reads or of writes.
type kindCounts struct{ executing, waiting, stalled, refused atomic.Int64 }

// Request is what the decision about a request depends on.
type Request struct {
	services.Attributes
	// Mutating is true for writes.
	Mutating bool
	// Bytes is the estimated size of the objects that a list reads; 0 for other requests.
	Bytes int64
}

// New returns shares with the mandatory levels and flows only, until Set.
func New(c Config) *Shares {
	s := &Shares{Config: c, levels: map[string]*level{}, replicas: 1, pressure: newPressure()}
	s.stalled.limit(c.Seats)
	s.Set(nil, nil)
	return s
}

// Class is the classification of a request.
type Class struct{ flow *flow }

// UIDs returns the UIDs of the FlowSchema and the PriorityLevelConfiguration of a class, as values of
// headers. They must not be modified. Those of a mandatory object that is not stored are empty.
func (c Class) UIDs() (flow, level []string) { return c.flow.uids, c.flow.level.uids() }

// Classify returns the class of a request.
func (s *Shares) Classify(r *Request) Class { return Class{s.table.Load().find(&r.Attributes)} }

// Acquire waits for the seats of a request. It returns TooManyRequests (429) if there are none in time
// or too many requests wait, or the error of ctx.
func (s *Shares) Acquire(ctx context.Context, c Class, r *Request, seat *Seat) error {
	l := c.flow.level
	seat.shares, seat.flow, seat.level = s, c.flow, l
	seat.about, seat.kind = r.Attributes, &s.kinds[0]
	if r.Mutating {
		seat.kind = &s.kinds[1]
	}
	seat.distinguisher = c.flow.distinguish(&r.Attributes)
	return l.acquire(ctx, seat, r.Bytes, s.Wait)
}

// Set replaces the configuration. Requests that wait or are served keep their place.
func (s *Shares) Set(levels []Level, flows []Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	levels = withMandatory(levels)
	next := make(map[string]*level, len(levels))
	changed := len(levels) != len(s.levels)
	for _, spec := range levels {
		l := s.levels[spec.Name]
		changed = changed || l == nil || l.spec != spec
		if l == nil {
			l = newLevel(spec)
			l.part = s.pressure.part
		} else {
			l.configure(spec)
		}
		next[spec.Name] = l
	}
	s.levels = next
	if changed { // else they keep what they have borrowed
		s.divide()
	}
	s.table.Store(newTable(flows, next, s.table.Load()))
}

// SetReplicas sets the number of running front doors, which divide the seats among them.
func (s *Shares) SetReplicas(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = max(n, 1); n != s.replicas {
		s.replicas = n
		s.divide()
	}
}

// seats returns the seats of this front door. The caller holds mu.
func (s *Shares) seats() int { return max(1, (s.Seats+s.replicas-1)/s.replicas) }

// Counts returns the counts of reads or of writes.
func (s *Shares) Counts(mutating bool) inflight.Counts {
	k := &s.kinds[0]
	if mutating {
		k = &s.kinds[1]
	}
	return inflight.Counts{Served: k.executing.Load(), Waiting: k.waiting.Load(), Stalled: k.stalled.Load(), Refused: k.refused.Load()}
}
