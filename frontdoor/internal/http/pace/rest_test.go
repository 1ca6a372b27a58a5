package pace

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"
)

// TestAnIdlePacerRests waits until the scans end, and expects that a transfer resumes them.
func TestAnIdlePacerRests(t *testing.T) {
	p := New(Config{Grace: time.Second, Rate: 1, Stall: time.Minute})
	p.restAfter = 2
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Run(ctx)
	}()
	defer func() { cancel(); <-ended }()
	until := func(what string, condition func() bool) {
		t.Helper()
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for limit := time.After(30 * time.Second); !condition(); {
			select {
			case <-ticks.C:
			case <-limit:
				t.Fatal("never " + what)
			}
		}
	}
	for range 2 {
		until("resting", p.resting.Load)
		var x Exchange
		p.Begin(&x, httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		x.start(1)
		from := p.now.Load()
		until("scanning", func() bool { return p.now.Load() > from+2*int64(p.restAfter) })
		p.done(&x.writing)
	}
}
