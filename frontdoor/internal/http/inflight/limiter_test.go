package inflight

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

func ordinary(name string) Requester { return Requester{Name: name} }

func TestUsersTakeTurns(t *testing.T) {
	l := New(1, time.Minute)
	var first Seat
	if err := l.Acquire(t.Context(), ordinary("greedy"), &first); err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 3)
	var all sync.WaitGroup
	queue := func(user string) {
		all.Go(func() {
			var seat Seat
			if err := l.Acquire(context.Background(), ordinary(user), &seat); err != nil {
				t.Error(err)
				return
			}
			order <- user
			seat.Release()
		})
	}
	for i, user := range []string{"greedy", "greedy", "modest"} {
		queue(user)
		l.awaitWaiting(i + 1)
	}
	first.Release()
	first.Release() // a second call is a no-op
	all.Wait()
	close(order)
	var got []string
	for user := range order {
		got = append(got, user)
	}
	if want := []string{"greedy", "modest", "greedy"}; !slices.Equal(got, want) {
		t.Errorf("seats were given in the order %v, want %v", got, want)
	}
	l.checkEmpty(t)
}

func TestWaitingIsBounded(t *testing.T) {
	l := New(1, time.Millisecond)
	var a, b Seat
	if err := l.Acquire(t.Context(), ordinary("a"), &a); err != nil {
		t.Fatal(err)
	}
	if err := l.Acquire(t.Context(), ordinary("b"), &b); !services.IsReason(err, services.ReasonTooManyRequests) {
		t.Errorf("got %v, want TooManyRequests", err)
	}
	a.Release()
	l.checkEmpty(t)
}

// TestShares fills the limiter with one user's requests: others, the control plane and
// administrators get seats at once.
func TestShares(t *testing.T) {
	l := New(40, time.Millisecond)
	var held []*Seat
	take := func(who Requester) error {
		seat := &Seat{}
		err := l.Acquire(t.Context(), who, seat)
		if err == nil {
			held = append(held, seat)
		}
		return err
	}
	count := func(who Requester) (n int) {
		for take(who) == nil {
			n++
		}
		return n
	}
	if n := count(ordinary("greedy")); n != 27 {
		t.Errorf("one user got %d seats, want 27", n)
	}
	if n := count(ordinary("modest")); n != 9 {
		t.Errorf("others got %d seats, want 9: all that are not reserved", n)
	}
	if n := count(Requester{Name: "system:portico:lifecycle", Class: System}); n != 4 {
		t.Errorf("the control plane got %d seats, want the 4 reserved ones", n)
	}
	for range 100 {
		if err := take(Requester{Name: "admin", Class: Exempt}); err != nil {
			t.Fatalf("an administrator has to wait: %v", err)
		}
	}
	for _, seat := range held {
		seat.Release()
	}
	l.checkEmpty(t)
}

// TestStall: stalled requests return their seats, and end when there are too many.
func TestStall(t *testing.T) {
	l := New(8, time.Minute)
	seats := make([]Seat, 3)
	for i := range seats {
		if err := l.Acquire(t.Context(), ordinary("slow"), &seats[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 0, 1} { // a seat that stalls already stays one
		if !seats[i].Stall() {
			t.Errorf("seat %d may not stall, although a quarter of the seats may", i)
		}
	}
	if seats[2].Stall() {
		t.Error("more than a quarter of the seats stall for one user")
	}
	if l.taken != 1 || l.stalled != 2 {
		t.Errorf("%d seats are taken and %d stalled, want 1 and 2", l.taken, l.stalled)
	}
	for i := range seats {
		seats[i].Release()
	}
	l.checkEmpty(t)
}

// TestLeaving: a waiting request whose client disconnects leaves nothing behind, and
// its turn goes to others.
func TestLeaving(t *testing.T) {
	l := New(1, time.Minute)
	var first, gone, next Seat
	if err := l.Acquire(t.Context(), ordinary("a"), &first); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- l.Acquire(ctx, ordinary("b"), &gone) }()
	l.awaitWaiting(1)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	first.Release()
	if err := l.Acquire(t.Context(), ordinary("c"), &next); err != nil {
		t.Error(err)
	}
	next.Release()
	l.checkEmpty(t)
}

// TestManyUsers: users without requests take no memory, and nothing is allocated while
// there are free seats.
func TestManyUsers(t *testing.T) {
	l := New(400, time.Minute)
	for i := range 10_000 {
		var seat Seat
		if err := l.Acquire(t.Context(), ordinary(strconv.Itoa(i)), &seat); err != nil {
			t.Fatal(err)
		}
		seat.Release()
	}
	l.checkEmpty(t)
	ctx := t.Context()
	seat := &Seat{}
	if n := testing.AllocsPerRun(1000, func() {
		_ = l.Acquire(ctx, Requester{Name: "one"}, seat)
		seat.Release()
	}); n > 0 {
		t.Errorf("%v allocations for a seat", n)
	}
}

func (l *Limiter) awaitWaiting(n int) {
	for {
		l.mu.Lock()
		waiting := l.waiting
		l.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

func (l *Limiter) checkEmpty(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken != 0 || l.ordinary != 0 || l.stalled != 0 || l.waiting != 0 || len(l.users) != 0 || l.exempt.Load() != 0 {
		t.Errorf("left: %d taken, %d ordinary, %d stalled, %d waiting, users %v", l.taken, l.ordinary, l.stalled, l.waiting, l.users)
	}
}
