package fairness

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestSeatsFollowTheProcessors: while goroutines wait for a processor, fewer requests are served at a time, down to a number that
// keeps all processors busy; administrators do not wait. Afterwards all seats are given again, and who waits is served.
func TestSeatsFollowTheProcessors(t *testing.T) {
	const seats = 100_000
	s := queued(seats, time.Minute)
	wait := 10 * late
	s.pressure.waited = func() time.Duration { return wait }
	limit := func() int {
		l := s.levels["busy"]
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.limit
	}
	all := limit()
	for before := all + 1; limit() < before; {
		before = limit()
		if !s.adjust() {
			t.Fatal("the adjustments stop while goroutines wait")
		}
	}
	least := perProcessor * runtime.GOMAXPROCS(0)
	if got := limit(); got != least {
		t.Fatalf("%d seats are left, want %d", got, least)
	}
	wait = (late + soon) / 2
	if s.adjust(); limit() != least {
		t.Errorf("%d seats after a wait that is neither long nor short", limit())
	}
	var held []*Seat
	for range least * 3 / 4 { // of one user
		held = append(held, take(t, s, of("greedy")))
	}
	var waiting sync.WaitGroup
	for range 10 {
		waiting.Go(func() {
			seat, r := &Seat{}, of("greedy")
			if err := s.Acquire(context.Background(), s.Classify(r), r, seat); err != nil {
				t.Error(err)
			}
			seat.Release()
		})
	}
	s.awaitWaiting(t, "busy", 10)
	take(t, s, of("modest")).Release()
	take(t, s, of("root", "system:masters")).Release()
	s.Set([]Level{{Name: "busy", UID: "level-uid", Shares: 1_000_000, Borrowing: -1, Queues: 64, Hand: 6, Length: 50}, {Name: "new", Shares: 1}}, []Flow{allUsers("busy")})
	s.SetReplicas(2)
	if got := limit(); got > least {
		t.Errorf("a new division gives %d seats", got)
	}
	wait = 0
	for s.adjust() {
	}
	waiting.Wait()
	if got := limit(); got < all/2-1 {
		t.Errorf("%d of %d seats are given again", got, all/2)
	}
	for _, seat := range held {
		seat.Release()
	}
}

// TestFewSeats: where fewer seats are configured than the processors can use, none is taken away.
func TestFewSeats(t *testing.T) {
	s := queued(4, time.Minute)
	s.pressure.waited = func() time.Duration { return time.Hour }
	before := s.levels["busy"].limit
	if s.adjust(); s.levels["busy"].limit != before {
		t.Errorf("%d of %d seats are left", s.levels["busy"].limit, before)
	}
}

// TestAdjustmentsBeginAndEnd: they begin when many requests are served, and end when nothing is left to adjust.
func TestAdjustmentsBeginAndEnd(t *testing.T) {
	s := queued(100_000, time.Minute)
	var held []*Seat
	for range perProcessor*runtime.GOMAXPROCS(0) + 1 {
		if s.pressure.adjusting.Load() {
			t.Fatalf("the adjustments begin with %d requests", len(held))
		}
		held = append(held, take(t, s, of("a")))
	}
	if !s.pressure.adjusting.Load() || !s.adjust() {
		t.Error("the adjustments do not begin")
	}
	for _, seat := range held {
		seat.Release()
	}
	if s.adjust() {
		t.Error("the adjustments do not end")
	}
}

// TestWaited: the metric of the runtime exists.
func TestWaited(t *testing.T) {
	waited := newWaited()
	waited()
	var all sync.WaitGroup
	for range 64 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for range 2000 {
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	if waited() <= 0 {
		t.Error("no goroutine has waited")
	}
}

// TestRetryAfterGrows: while many requests are refused, clients have to wait for longer, and later for less.
func TestRetryAfterGrows(t *testing.T) {
	var r refusals
	now := time.Unix(1000, 0)
	burst := func(n int) (after int32) {
		for range n {
			after = r.add(now)
		}
		return after
	}
	for i, want := range []int32{1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8} {
		if got := burst(100); got != want {
			t.Errorf("second %d: %d, want %d", i, got, want)
		}
		now = now.Add(time.Second)
	}
	now = now.Add(time.Minute)
	if got := burst(1); got != 1 {
		t.Errorf("after a minute: %d, want 1", got)
	}
	for range 100 {
		now = now.Add(700 * time.Millisecond)
		if got := burst(1); got != 1 {
			t.Fatalf("few refusals: %d, want 1", got)
		}
	}
}
