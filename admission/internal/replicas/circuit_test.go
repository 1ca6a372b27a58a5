package replicas

import (
	"testing"
	"time"
)

// TestCallsWithoutTimeAreNoTrials: a caller without the time that the service may take neither opens a circuit nor
// keeps it from closing, and is asked nevertheless when a trial is due.
func TestCallsWithoutTimeAreNoTrials(t *testing.T) {
	var c circuit
	now := time.Now()
	for range threshold {
		trial, _ := c.enter(now, true)
		c.leave(unanswered, trial, now)
	}
	if _, ok := c.enter(now, false); ok || c.now(now) != Open {
		t.Fatal("the circuit is not open")
	}
	now = now.Add(minOpen)
	for range 3 {
		trial, ok := c.enter(now, false)
		if trial || !ok {
			t.Fatalf("a call without time: trial %v, %v", trial, ok)
		}
		defer c.leave(abandoned, trial, now)
	}
	trial, ok := c.enter(now, true)
	if !trial || !ok {
		t.Fatalf("the trial is not made: %v, %v", trial, ok)
	}
	if _, ok := c.enter(now, true); ok {
		t.Error("a second trial at a time")
	}
	if c.leave(answered, trial, now); c.now(now) != Closed {
		t.Error("the circuit is not closed")
	}
}
