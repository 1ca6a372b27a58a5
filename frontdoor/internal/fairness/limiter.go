// Package fairness shares a bounded number of places among users: while there is
// room everybody gets one at once, and when there is none users take turns, so
// that one who asks a lot delays only himself. It never looks at what a request
// does. It serves "Limits" of the specification, where rate limits are left open.
package fairness

import (
	"context"
	"sync"
	"time"

	"github.com/portico-platform/portico/services"
)

// Limiter has a fixed number of places.
type Limiter struct {
	places int
	queue  int           // how many requests of one user may wait
	wait   time.Duration // how long a request may wait

	mu    sync.Mutex
	taken int
	// waiting holds each user's requests in order; turns holds the users that have
	// any, the next one first.
	waiting map[string][]chan struct{}
	turns   []string
}

// New returns a limiter with that many places. A user may have four times as many
// requests waiting, each for at most wait.
func New(places int, wait time.Duration) *Limiter {
	return &Limiter{places: places, queue: 4 * places, wait: wait, waiting: map[string][]chan struct{}{}}
}

// Acquire takes a place for a user and returns the function that gives it back,
// which may be called more than once. The error is a TooManyRequests (429) when
// none became free in time, or the context's.
func (l *Limiter) Acquire(ctx context.Context, user string) (release func(), err error) {
	l.mu.Lock()
	if l.taken < l.places {
		l.taken++
		l.mu.Unlock()
		return l.releaser(), nil
	}
	if len(l.waiting[user]) >= l.queue {
		l.mu.Unlock()
		return nil, tooMany()
	}
	turn := make(chan struct{})
	if len(l.waiting[user]) == 0 {
		l.turns = append(l.turns, user)
	}
	l.waiting[user] = append(l.waiting[user], turn)
	l.mu.Unlock()

	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case <-turn:
		return l.releaser(), nil
	case <-timer.C:
		err = tooMany()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if l.leave(user, turn) {
		return nil, err
	}
	return l.releaser(), nil // the turn came at the same moment
}

// leave takes a request out of its user's queue; false when its turn has come.
func (l *Limiter) leave(user string, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range l.waiting[user] {
		if c == turn {
			l.waiting[user] = append(l.waiting[user][:i:i], l.waiting[user][i+1:]...)
			l.forget(user)
			return true
		}
	}
	return false
}

// forget takes a user without waiting requests out of the turns.
func (l *Limiter) forget(user string) {
	if len(l.waiting[user]) > 0 {
		return
	}
	delete(l.waiting, user)
	for i, u := range l.turns {
		if u == user {
			l.turns = append(l.turns[:i:i], l.turns[i+1:]...)
			return
		}
	}
}

func (l *Limiter) releaser() func() {
	var once sync.Once
	return func() { once.Do(l.release) }
}

// release hands the place to the next user's first request, or frees it.
func (l *Limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) == 0 {
		l.taken--
		return
	}
	user := l.turns[0]
	turn := l.waiting[user][0]
	l.waiting[user] = l.waiting[user][1:]
	l.turns = l.turns[1:]
	if len(l.waiting[user]) > 0 {
		l.turns = append(l.turns, user)
	} else {
		delete(l.waiting, user)
	}
	close(turn)
}

func tooMany() *services.Status {
	return &services.Status{Code: 429, Reason: services.ReasonTooManyRequests,
		Message: "too many requests, please try again later", Details: &services.StatusDetails{RetryAfterSeconds: 1}}
}
