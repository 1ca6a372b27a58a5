package sharedcall

import (
	"context"
	"errors"
	"testing"
	"time"
)

// deadline bounds a wait for what has to come.
const deadline = 10 * time.Second

func TestReadersShareOneReading(t *testing.T) {
	reads := make(chan chan int64)
	l := New(time.Minute, func(context.Context, []struct{}) (int64, error) {
		answer := make(chan int64)
		reads <- answer
		return <-answer, nil
	})
	got := make(chan int64, 16)
	ask := func() {
		revision, _, err := l.Do(context.Background(), struct{}{})
		if err != nil {
			t.Error(err)
		}
		got <- revision
	}
	go ask()
	first := <-reads
	// These arrive while the first read is in flight, which started before them.
	for range 10 {
		go ask()
	}
	first <- 1
	if revision := <-got; revision != 1 {
		t.Errorf("the first reader got %d", revision)
	}
	answered, n := 0, int64(0)
	for answered < 10 {
		select {
		case answer := <-reads:
			n++
			answer <- 2
		case revision := <-got:
			answered++
			if revision != 2 {
				t.Errorf("a later reader got %d", revision)
			}
		case <-time.After(deadline):
			t.Fatal("no answer")
		}
	}
	if n > 10 {
		t.Errorf("%d readings for 10 readers", n)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { <-reads <- 3 }()
	if _, _, err := l.Do(cancelled, struct{}{}); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled reader: %v", err)
	}
}
