package fairness

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

func TestUsersTakeTurns(t *testing.T) {
	l := New(1, time.Minute)
	release, err := l.Acquire(t.Context(), "greedy")
	if err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 3)
	var all sync.WaitGroup
	queue := func(user string) {
		waiting := l.waitingFor(user)
		all.Go(func() {
			release, err := l.Acquire(context.Background(), user)
			if err != nil {
				t.Error(err)
				return
			}
			order <- user
			release()
		})
		for l.waitingFor(user) == waiting { // until it stands in the queue
			runtime.Gosched()
		}
	}
	queue("greedy")
	queue("greedy")
	queue("modest")
	release()
	release() // a second call gives nothing back
	all.Wait()
	close(order)
	var got []string
	for user := range order {
		got = append(got, user)
	}
	if want := []string{"greedy", "modest", "greedy"}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("places were given in the order %v, want %v", got, want)
	}
	if l.taken != 0 {
		t.Errorf("%d places are taken after all were given back", l.taken)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	l := New(1, time.Millisecond)
	if _, err := l.Acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	_, err := l.Acquire(t.Context(), "b")
	if !services.IsReason(err, services.ReasonTooManyRequests) {
		t.Errorf("got %v, want TooManyRequests", err)
	}
	if len(l.turns) != 0 {
		t.Errorf("%v still wait", l.turns)
	}
}

func (l *Limiter) waitingFor(user string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting[user])
}
