package fairness

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/util/shufflesharding"
)

// guess is the assumed duration of a request until it has ended, in seconds.
const guess = 0.003

// level is a priority level in use.
//
// Its queues are served fairly by virtual time: time in which each active queue has been
// given one second of one seat. A queue has an account, the virtual time up to which it has used
// its part, and the next request is taken from the queue that would use its part up first.
type level struct {
	mu   sync.Mutex
	spec Level
	// uid is that of spec as the values of a header. It is never modified.
	uid    []string
	dealer *shufflesharding.Dealer // nil without queues
	queues []*queue                // created when they are used first

	// nominal are the seats of the level, granted those that it has after lending and borrowing, and limit the part of
	// these that it has at present: see pressure.
	nominal, least, most, granted, limit int
	part                                 float64
	inUse                                int            // seats
	held                                 map[uint64]int // of inUse, by flow
	executing                            list
	pending                              []*queue // those with waiting requests, in the order in which they began to wait
	waiting, waitingSeats                int
	active                               int // queues with requests
	virtual                              float64
	at                                   time.Time // of virtual
	demand                               demand
	counts                               levelCounts
	refusals                             refusals
}

// levelCounts counts the requests by their result, for the debug endpoints.
type levelCounts struct{ dispatched, rejected, timedOut, cancelled int64 }

// queue is a queue of a level.
type queue struct {
	index        int
	waiting      list
	waitingSeats int
	executing    int
	inUse        int // seats
	account      float64
}

func newLevel(spec Level) *level {
	l := &level{granted: 1, limit: 1, part: 1, held: map[uint64]int{}}
	l.configure(spec)
	return l
}

// configure replaces the specification. Requests in queues that no longer exist are served.
func (l *level) configure(spec Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spec, l.uid, l.dealer = spec, []string{spec.UID}, nil
	if spec.Queues > 0 {
		// ParseLevel has checked the numbers.
		l.dealer, _ = shufflesharding.NewDealer(spec.Queues, spec.Hand)
	}
	if spec.Queues != len(l.queues) {
		queues := make([]*queue, spec.Queues)
		copy(queues, l.queues)
		l.queues = queues
	}
}

func (l *level) uids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uid
}

// setLimit changes the seats that the level has after lending and borrowing.
func (l *level) setLimit(limit int, now time.Time) { l.resize(now, func() { l.granted = limit }) }

// setPart gives the level a part of these seats.
func (l *level) setPart(part float64, now time.Time) { l.resize(now, func() { l.part = part }) }

// resize changes the seats of the level, and serves the requests that may now be served.
func (l *level) resize(now time.Time, change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	change()
	l.limit = l.scaled()
	l.dispatch(now)
}

// advance brings the virtual time up to date. The caller holds mu.
func (l *level) advance(now time.Time) {
	if l.active > 0 {
		busy := min(l.limit, l.inUse+l.waitingSeats)
		l.virtual += max(0, now.Sub(l.at).Seconds()) * float64(busy) / float64(l.active)
	}
	l.at = now
}

// choose returns the queue with the fewest seats in use and demanded, of those of the flow.
func (l *level) choose(entropy uint64) *queue {
	var cards [maxHand]int
	best, least := -1, 0
	for _, i := range l.dealer.DealIntoHand(entropy, cards[:]) {
		load := 0
		if q := l.queues[i]; q != nil {
			load = q.inUse + q.waitingSeats
		}
		if best < 0 || load < least {
			best, least = i, load
		}
	}
	if l.queues[best] == nil {
		l.queues[best] = &queue{index: best}
	}
	return l.queues[best]
}

// maxHand is the largest hand that a dealer deals.
const maxHand = 15

// fits reports whether the level has the seats for a request. One that needs more than all seats
// is served alone.
func (l *level) fits(s *Seat) bool {
	return l.inUse == 0 || l.inUse+s.width <= l.limit && l.within(s)
}

// within reports whether a flow may have the seats of another request: three quarters of all, so that
// others do not have to wait until one of its requests ends. A FlowSchema without a distinguisher may
// have all.
func (l *level) within(s *Seat) bool {
	has := l.held[s.part]
	return has == 0 || s.flow.By == "" || has+s.width <= max(1, l.limit*3/4)
}

// enter puts a request in a queue, or serves it at once. It returns the reason if it is refused.
// The caller holds mu.
func (l *level) enter(s *Seat, bytes int64, now time.Time) (refused string) {
	l.advance(now)
	if l.spec.Exempt {
		l.start(s, now)
		return ""
	}
	s.width, s.part = seatsFor(bytes, l.nominal), s.flow.entropy(s.distinguisher)
	l.demand.note(l.inUse + l.waitingSeats + s.width)
	if l.dealer == nil {
		if !l.fits(s) {
			return reasonLimit
		}
		l.start(s, now)
		return ""
	}
	q := l.choose(s.part)
	if l.waiting > 0 || !l.fits(s) {
		if q.waiting.n >= l.spec.Length {
			return reasonFull
		}
	}
	s.queue = q
	if q.executing+q.waiting.n == 0 {
		l.active++
		q.account = l.virtual
	}
	s.arrivedAt = l.virtual
	if l.waiting == 0 && l.fits(s) {
		l.start(s, now)
		return ""
	}
	l.enqueue(s, q)
	l.dispatch(now) // those that wait may be of flows that have their part
	return ""
}

func (l *level) enqueue(s *Seat, q *queue) {
	if q.waiting.n == 0 {
		l.pending = append(l.pending, q)
	}
	s.granted = make(chan struct{})
	s.state = waiting
	q.waiting.push(s)
	q.waitingSeats += s.width
	l.waiting++
	l.waitingSeats += s.width
	s.flow.queued(q.waiting.n)
	s.kind.waiting.Add(1)
}

// dequeue removes a waiting request.
func (l *level) dequeue(s *Seat) {
	q := s.queue
	q.waiting.remove(s)
	q.waitingSeats -= s.width
	l.waiting--
	l.waitingSeats -= s.width
	s.flow.inqueue.Add(-1)
	s.kind.waiting.Add(-1)
	if q.waiting.n == 0 {
		i := slices.Index(l.pending, q)
		l.pending = slices.Delete(l.pending, i, i+1)
	}
}

// start gives a request its seats.
func (l *level) start(s *Seat, now time.Time) {
	if q := s.queue; q != nil {
		q.account = max(q.account, s.arrivedAt) + float64(s.width)*guess
		q.executing++
		q.inUse += s.width
	}
	if s.width > 0 {
		l.inUse += s.width
		l.held[s.part] += s.width
	}
	s.state, s.began = executing, now
	l.executing.push(s)
	l.counts.dispatched++
	s.flow.dispatched.Add(1)
	s.flow.executing.Add(1)
	s.kind.executing.Add(1)
	s.shares.notice()
}

// end takes back the seats of a request, and serves others.
func (l *level) end(s *Seat, now time.Time) {
	l.advance(now)
	took := now.Sub(s.began).Seconds()
	l.executing.remove(s)
	l.inUse -= s.width
	if l.held[s.part] -= s.width; l.held[s.part] <= 0 {
		delete(l.held, s.part)
	}
	if q := s.queue; q != nil {
		q.account += float64(s.width) * (took - guess)
		q.executing--
		q.inUse -= s.width
		l.rest(q)
	}
	s.flow.executing.Add(-1)
	s.flow.execution.Observe(took)
	s.kind.executing.Add(-1)
	l.dispatch(now)
}

// rest notes that a queue may have become inactive.
func (l *level) rest(q *queue) {
	if q.executing+q.waiting.n > 0 {
		return
	}
	if l.active--; l.active == 0 {
		l.virtual = 0 // so that it stays exact
	}
}

// dispatch serves waiting requests while there are seats.
func (l *level) dispatch(now time.Time) {
	for l.waiting > 0 {
		s := l.next()
		if s == nil || !l.fits(s) {
			return
		}
		l.dequeue(s)
		l.start(s, now)
		close(s.granted)
	}
}

// next returns the request that is served next: of the queues, that which would use its part up
// first. It returns nil if all are of flows that have too many seats.
func (l *level) next() (best *Seat) {
	var soonest float64
	for _, q := range l.pending {
		s := q.waiting.first
		if l.inUse > 0 && !l.within(s) {
			continue
		}
		ends := max(q.account, s.arrivedAt) + float64(s.width)*guess
		if best == nil || ends < soonest {
			best, soonest = s, ends
		}
	}
	return best
}
