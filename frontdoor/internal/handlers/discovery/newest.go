package discovery

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// patience is how long a request waits, while types change, for a document that is being made and of which there is
	// an earlier complete one.
	patience = 50 * time.Millisecond
	// quiet is how long types have not changed when a request waits for as long as it takes.
	quiet = time.Second
)

// generation is what documents describe: later ones have larger numbers.
type generation struct {
	number uint64
	since  time.Time
}

// newest is a document that takes long to make. It is made by one goroutine at a time, whichever number of requests
// there is. A request gets the document of the current generation; while types change, after its patience, the latest
// complete one.
type newest struct {
	mu     sync.Mutex
	done   *body // nil before the first is complete
	number uint64
	making *making
}

// making is a document while it is made.
type making struct {
	over chan struct{} // closed when err is set
	err  error
}

// get returns the document, of a generation or a later one if it is complete in time. of makes it. The error is that of
// of or of ctx.
func (n *newest) get(ctx context.Context, g generation, of func() (*body, error)) (*body, error) {
	var late <-chan time.Time
	for {
		n.mu.Lock()
		done := n.done
		if done != nil && n.number >= g.number {
			n.mu.Unlock()
			return done, nil
		}
		now := n.making
		if now == nil {
			now = n.begin(g.number, of)
		}
		n.mu.Unlock()
		if done != nil && late == nil && time.Since(g.since) < quiet {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-now.over:
			if now.err != nil {
				return nil, now.err
			}
		case <-late:
			return done, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin makes the document of a generation. The caller holds n.mu.
func (n *newest) begin(number uint64, of func() (*body, error)) *making {
	now := &making{over: make(chan struct{})}
	n.making = now
	go func() {
		b, err := recovered(of)
		n.mu.Lock()
		defer n.mu.Unlock()
		if now.err = err; err == nil {
			n.done, n.number = b, number
		}
		n.making = nil
		close(now.over)
	}()
	return now
}

// recovered returns what of returns, or an error if it panics: the libraries are made for documents of servers that
// one trusts.
func recovered(of func() (*body, error)) (b *body, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("the OpenAPI document cannot be made: %v", p)
		}
	}()
	return of()
}
