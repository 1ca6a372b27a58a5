// Package sharedcall lets concurrent callers share one call of another service, for reads
// whose result must not be older than the call. It caches nothing. It serves "Read
// consistency" of the specification.
package sharedcall

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Group shares calls. One call is in flight at a time. Callers that arrive during it share
// the next one, because a linearizable read must start after they do.
type Group[Argument comparable, Result any] struct {
	timeout time.Duration
	call    func(ctx context.Context, arguments []Argument) (Result, error)

	mu      sync.Mutex
	next    *shared[Argument, Result] // the call that has not started; nil if nobody waits for one
	running bool
}

// shared is one call and its result.
type shared[Argument comparable, Result any] struct {
	ctx       context.Context // of the first caller, whose end does not matter to the others
	arguments []Argument
	done      chan struct{}
	result    Result
	err       error
}

// New returns a group whose calls have a timeout.
func New[Argument comparable, Result any](timeout time.Duration, call func(context.Context, []Argument) (Result, error)) *Group[Argument, Result] {
	return &Group[Argument, Result]{timeout: timeout, call: call}
}

// Do returns the result of a call that starts after Do, and the index of the argument among
// those of all callers.
func (g *Group[Argument, Result]) Do(ctx context.Context, argument Argument) (result Result, at int, err error) {
	g.mu.Lock()
	if g.next == nil {
		g.next = &shared[Argument, Result]{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	}
	s := g.next
	if at = slices.Index(s.arguments, argument); at < 0 {
		at = len(s.arguments)
		s.arguments = append(s.arguments, argument)
	}
	if !g.running {
		g.running = true
		go g.run()
	}
	g.mu.Unlock()
	select {
	case <-s.done:
		return s.result, at, s.err
	case <-ctx.Done():
		return result, at, ctx.Err()
	}
}

// run repeats the call until no caller waits.
func (g *Group[Argument, Result]) run() {
	for {
		g.mu.Lock()
		s := g.next
		g.next = nil
		g.running = s != nil
		g.mu.Unlock()
		if s == nil {
			return
		}
		ctx, cancel := context.WithTimeout(s.ctx, g.timeout)
		s.result, s.err = g.call(ctx, s.arguments)
		cancel()
		close(s.done)
	}
}
