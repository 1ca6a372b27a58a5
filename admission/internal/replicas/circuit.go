package replicas

import (
	"sync"
	"time"
)

const (
	// threshold is how many calls in a row must fail to open a circuit.
	threshold = 5
	// minOpen and maxOpen bound how long it stays open; each failed trial doubles it.
	minOpen = time.Second
	maxOpen = 30 * time.Second
)

// Breaker is the state of a circuit breaker.
type Breaker string

// The states of a circuit, the best first.
const (
	Closed   Breaker = "Closed"   // calls are made
	HalfOpen Breaker = "HalfOpen" // one call is made as a trial
	Open     Breaker = "Open"     // calls are not made
)

// circuit stops calls to a replica that does not answer. It counts only calls without an
// answer in time: one that is wrong costs no time, and may depend on the request, whose
// sender must not be able to open the circuit for others.
type circuit struct {
	mu       sync.Mutex
	failures int
	opened   time.Time // zero when closed
	wait     time.Duration
	trial    bool // a trial is under way
}

// enter reports whether a call may be made, and whether it is a trial. If it may be made,
// leave has to be called. A call that has not all the time that the service may take (full) is no trial: its
// caller could otherwise keep the circuit from closing. It is made nevertheless when a trial is due.
func (c *circuit) enter(now time.Time, full bool) (trial, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state(now) {
	case Closed:
		return false, true
	case HalfOpen:
		if !full {
			return false, true
		}
		if c.trial {
			return false, false
		}
		c.trial = true
		return true, true
	}
	return false, false
}

// outcome is how a call ended.
type outcome int

const (
	answered outcome = iota
	unanswered
	abandoned // by the caller, which says nothing about the replica
)

// leave records the outcome of a call.
func (c *circuit) leave(o outcome, trial bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if trial {
		c.trial = false
	}
	switch {
	case o == abandoned:
	case o == answered:
		c.failures, c.opened, c.wait = 0, time.Time{}, 0
	case trial:
		c.opened, c.wait = now, min(2*c.wait, maxOpen)
	case c.opened.IsZero():
		if c.failures++; c.failures >= threshold {
			c.opened, c.wait = now, minOpen
		}
	}
}

// now returns the state at a time.
func (c *circuit) now(t time.Time) Breaker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state(t)
}

func (c *circuit) state(now time.Time) Breaker {
	switch {
	case c.opened.IsZero():
		return Closed
	case now.Sub(c.opened) < c.wait:
		return Open
	}
	return HalfOpen
}
