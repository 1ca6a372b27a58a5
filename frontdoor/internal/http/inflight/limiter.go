// Package inflight shares limited resources between users: the seats of connections and of
// extensions, those of reads and writes without priority levels (package fairness), and the memory of
// request bodies. While there are free seats, a request gets one at once;
// otherwise users are served in turn, so that a user with many requests delays only its own.
// No user may hold all seats, some are reserved for the control plane, and administrators
// never wait. It serves "Limits" of the specification, which leaves rate limits open.
package inflight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
)

// Class is the priority class of a requester.
type Class uint8

const (
	// Ordinary requesters share the seats that are not reserved.
	Ordinary Class = iota
	// System requesters, the control plane, may also use the reserved seats.
	System
	// Exempt requesters, the administrators, never wait.
	Exempt
)

// Requester is the user that a seat is for.
type Requester struct {
	Name  string
	Class Class
}

// Limiter has a fixed number of seats.
type Limiter struct {
	seats    int
	reserved int           // of the seats, for class System
	share    int           // maximum seats of one user
	stalls   int           // maximum stalled requests of one user
	queue    int           // maximum waiting requests of one user
	allQueue int           // maximum waiting requests in total
	wait     time.Duration // maximum time that a request waits

	exempt  atomic.Int64
	refused atomic.Int64

	mu       sync.Mutex
	taken    int // by all classes but Exempt
	ordinary int // of taken, by class Ordinary
	stalled  int
	waiting  int
	users    map[string]*user // with held, stalled or waiting requests
	spare    *user
	// turns is a queue per class of the users with waiting requests, the next one
	// first.
	turns [Exempt][]*user
}

// user is the state of one user.
type user struct {
	Requester
	held, stalled int
	waiting       []*Seat
	spare         *user // next in the free list
}

// Seat is one request's slot in a limiter. Its zero value holds none. It must not be
// copied.
type Seat struct {
	limiter *Limiter
	user    *user // nil for none
	exempt  bool
	stalled bool
	turn    chan struct{} // closed when a queued request is served; nil if it was not queued
}

// New returns a limiter with a number of seats, a tenth of which is reserved for class
// System. One user may hold three quarters of the rest. A user may have four times as many
// waiting requests as there are seats, each for at most wait.
func New(seats int, wait time.Duration) *Limiter {
	reserved := seats / 10
	return &Limiter{seats: seats, reserved: reserved, share: max(1, (seats-reserved)*3/4), stalls: max(1, seats/4),
		queue: 4 * seats, allQueue: 16 * seats, wait: wait, users: map[string]*user{}}
}

// Acquire waits for a seat. It returns TooManyRequests (429) if none becomes free in time
// or too many requests wait, or the error of ctx.
func (l *Limiter) Acquire(ctx context.Context, who Requester, seat *Seat) error {
	seat.limiter = l
	if who.Class == Exempt {
		l.exempt.Add(1)
		seat.exempt = true
		return nil
	}
	l.mu.Lock()
	u := l.user(who)
	if l.mayTake(u) {
		l.take(u, seat)
		l.mu.Unlock()
		return nil
	}
	if len(u.waiting) >= l.queue || l.waiting >= l.allQueue {
		l.forget(u)
		l.mu.Unlock()
		l.refused.Add(1)
		return services.TooManyRequests("too many requests, please try again later")
	}
	seat.turn = make(chan struct{})
	if len(u.waiting) == 0 {
		l.turns[u.Class] = append(l.turns[u.Class], u)
	}
	u.waiting = append(u.waiting, seat)
	l.waiting++
	l.mu.Unlock()
	return l.await(ctx, u, seat)
}

// await waits for the turn of a queued seat.
func (l *Limiter) await(ctx context.Context, u *user, seat *Seat) error {
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	var err error
	select {
	case <-seat.turn:
		return nil
	case <-timer.C:
		err = services.TooManyRequests("too many requests, please try again later")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !l.leave(u, seat) {
		return nil // served at the same moment
	}
	l.refused.Add(1)
	return err
}

// Release returns the seat. It may be called more than once.
func (s *Seat) Release() {
	l := s.limiter
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := s.user
	switch {
	case s.exempt:
		s.exempt = false
		l.exempt.Add(-1)
		return
	case u == nil:
		return
	case s.stalled:
		u.stalled--
		l.stalled--
	default:
		l.free(u)
	}
	s.user, s.stalled = nil, false
	l.forget(u)
}

// Stall returns the seat while the client does not read the response. It returns false if
// there are too many stalled requests; the caller must then end the request.
func (s *Seat) Stall() bool {
	l := s.limiter
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := s.user
	if u == nil || s.stalled { // exempt, or returned
		return true
	}
	if u.stalled >= l.stalls || l.stalled >= l.seats {
		return false
	}
	s.stalled = true
	u.stalled++
	l.stalled++
	l.free(u)
	return true
}

// user returns the state of a user, which it creates if necessary. forget removes it.
func (l *Limiter) user(who Requester) *user {
	if u, ok := l.users[who.Name]; ok {
		return u
	}
	u := l.spare
	if u == nil {
		u = &user{}
	} else {
		l.spare = u.spare
	}
	*u = user{Requester: who, waiting: u.waiting[:0]}
	l.users[who.Name] = u
	return u
}

// forget removes the state of a user without requests.
func (l *Limiter) forget(u *user) {
	if u.held > 0 || u.stalled > 0 || len(u.waiting) > 0 {
		return
	}
	delete(l.users, u.Name)
	if cap(u.waiting) > spareQueue {
		u.waiting = nil
	}
	u.Name, u.spare = "", l.spare
	l.spare = u
}

// spareQueue is the largest queue capacity that the free list keeps.
const spareQueue = 16

// mayTake reports whether there is a free seat that the user may have.
func (l *Limiter) mayTake(u *user) bool {
	if l.taken >= l.seats || u.held >= l.share {
		return false
	}
	return u.Class == System || l.ordinary < l.seats-l.reserved
}

func (l *Limiter) take(u *user, seat *Seat) {
	seat.user = u
	u.held++
	l.taken++
	if u.Class == Ordinary {
		l.ordinary++
	}
}

// free returns a user's seat and serves waiting requests.
func (l *Limiter) free(u *user) {
	u.held--
	l.taken--
	if u.Class == Ordinary {
		l.ordinary--
	}
	for l.waiting > 0 && (l.serve(System) || l.serve(Ordinary)) {
	}
}

// serve gives a seat to the first request of the next eligible user of a class. It
// returns false if there is none.
func (l *Limiter) serve(class Class) bool {
	turns := l.turns[class]
	for i, u := range turns {
		if !l.mayTake(u) {
			continue
		}
		seat := u.waiting[0]
		u.waiting = append(u.waiting[:0], u.waiting[1:]...)
		l.waiting--
		turns = append(turns[:i], turns[i+1:]...)
		if len(u.waiting) > 0 {
			turns = append(turns, u)
		}
		l.turns[class] = turns
		l.take(u, seat)
		close(seat.turn)
		return true
	}
	return false
}

// leave removes a request from its user's queue. It returns false if the request has
// been served.
func (l *Limiter) leave(u *user, seat *Seat) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seat.user != nil {
		return false
	}
	for i, s := range u.waiting {
		if s == seat {
			u.waiting = append(u.waiting[:i], u.waiting[i+1:]...)
			l.waiting--
			break
		}
	}
	if len(u.waiting) == 0 {
		turns := l.turns[u.Class]
		for i, other := range turns {
			if other == u {
				l.turns[u.Class] = append(turns[:i], turns[i+1:]...)
				break
			}
		}
	}
	l.forget(u)
	return true
}
