package fairness

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/portico-platform/portico/services"
)

// state is what a request has.
type state uint8

const (
	none state = iota
	waiting
	executing
	stalled
)

// Reasons of refusals, as in the metrics of Kubernetes.
const (
	reasonFull  = "queue-full"
	reasonLimit = "concurrency-limit"
	reasonTime  = "time-out"
	reasonGone  = "cancelled"
)

// Seat is what one request holds of its level. Its zero value holds nothing. It must not be copied.
type Seat struct {
	shares *Shares
	level  *level
	flow   *flow
	queue  *queue // nil in a level without queues
	kind   *kindCounts
	state  state
	width  int    // seats
	part   uint64 // identifies the flow

	about         services.Attributes
	distinguisher string
	arrived       time.Time
	began         time.Time
	arrivedAt     float64       // in virtual time
	granted       chan struct{} // closed when a waiting request is served
	next, prev    *Seat
}

// list is a list of requests.
type list struct {
	first, last *Seat
	n           int
}

func (l *list) push(s *Seat) {
	s.prev, s.next = l.last, nil
	if l.last == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	l.last = s
	l.n++
}

func (l *list) remove(s *Seat) {
	if s.prev == nil {
		l.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	l.n--
}

// acquire waits for the seats of a request that reads so many bytes.
func (l *level) acquire(ctx context.Context, s *Seat, bytes int64, wait time.Duration) error {
	s.arrived = time.Now()
	l.mu.Lock()
	refused := l.enter(s, bytes, s.arrived)
	queued := s.state == waiting
	if refused != "" {
		l.counts.rejected++
	}
	l.mu.Unlock()
	switch {
	case refused != "":
		return s.refuse(refused, s.arrived)
	case !queued:
		return nil
	}
	return l.await(ctx, s, wait)
}

// await waits until a queued request is served.
func (l *level) await(ctx context.Context, s *Seat, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	reason := reasonTime
	select {
	case <-s.granted:
	case <-timer.C:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			reason = reasonGone
		}
	}
	served := l.served(s, reason)
	s.flow.waited(served, time.Since(s.arrived))
	switch {
	case served:
		return nil
	case reason == reasonGone:
		s.count(reason)
		return ctx.Err()
	}
	return s.refuse(reason, time.Now())
}

// served reports whether a request has its seats. It removes one that still waits.
func (l *level) served(s *Seat, reason string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.state != waiting {
		return true
	}
	now := time.Now()
	l.advance(now)
	l.dequeue(s)
	l.rest(s.queue)
	s.state = none
	if reason == reasonGone {
		l.counts.cancelled++
	} else {
		l.counts.timedOut++
	}
	l.dispatch(now) // a narrower request may fit
	return false
}

// refuse counts a refusal and returns its error.
func (s *Seat) refuse(reason string, now time.Time) error {
	l := s.level
	l.mu.Lock()
	after := l.refusals.add(now)
	l.mu.Unlock()
	s.count(reason)
	status := services.TooManyRequests("too many requests, please try again later")
	status.Details.RetryAfterSeconds = after
	return status
}

// count counts a request that is not served.
func (s *Seat) count(reason string) {
	s.flow.refused(reason).Add(1)
	s.kind.refused.Add(1)
	s.level = nil
}

// Release returns the seats. It may be called more than once.
func (s *Seat) Release() {
	l := s.level
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s.state {
	case executing:
		l.end(s, time.Now())
	case stalled:
		s.shares.stalled.leave(s.about.User.Name)
		s.kind.stalled.Add(-1)
	}
	s.state = none
}

// Stall returns the seats while the client does not read the response. It returns false if
// there are too many stalled requests; the caller must then end the request.
func (s *Seat) Stall() bool {
	l := s.level
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.state != executing || l.spec.Exempt {
		return true
	}
	if !s.shares.stalled.join(s.about.User.Name) {
		return false
	}
	l.end(s, time.Now())
	s.state = stalled
	s.kind.stalled.Add(1)
	return true
}

// stalls counts the requests without seats whose clients are slow to read.
type stalls struct {
	mu         sync.Mutex
	all, share int // maximum in total, and of one user
	n          int
	users      map[string]int
}

// limit allows as many stalled requests as there are seats, and a quarter to one user.
func (s *stalls) limit(seats int) {
	s.all, s.share, s.users = seats, max(1, seats/4), map[string]int{}
}

func (s *stalls) join(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n >= s.all || s.users[user] >= s.share {
		return false
	}
	s.n++
	s.users[user]++
	return true
}

func (s *stalls) leave(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
	if s.users[user]--; s.users[user] == 0 {
		delete(s.users, user)
	}
}
