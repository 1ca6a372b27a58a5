package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/deploy/bench/internal/figures"
	"github.com/portico-platform/portico/deploy/bench/internal/wire"
)

// each runs work n times concurrently and returns the first error, which cancels the
// others.
func each(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if err := work(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// clients are connections that send requests concurrently.
type clients []*wire.Conn

// connect opens a connection per client. They are closed when ctx ends.
func (t *target) connect(ctx context.Context, n int) (clients, error) {
	all := make(clients, n)
	for i := range all {
		c, err := t.dial(ctx)
		if err != nil {
			return nil, err
		}
		all[i] = c
	}
	return all, nil
}

// operation is one request of a client; it returns the size of the response.
type operation func(client int, c *wire.Conn) (int64, error)

// load runs operations on all clients while next returns true, and records their
// latencies.
func (all clients) load(ctx context.Context, next func() bool, do operation) (figures.Samples, error) {
	var lock sync.Mutex
	var total figures.Samples
	err := each(ctx, len(all), func(ctx context.Context, i int) error {
		stop := context.AfterFunc(ctx, all[i].Close)
		defer stop()
		var own figures.Samples
		for next() {
			began := time.Now()
			size, err := do(i, all[i])
			if err != nil {
				return err
			}
			own.Latencies = append(own.Latencies, time.Since(began))
			own.Bytes += size
		}
		lock.Lock()
		defer lock.Unlock()
		total.Latencies = append(total.Latencies, own.Latencies...)
		total.Bytes += own.Bytes
		return nil
	})
	total.Operations = len(total.Latencies)
	return total, err
}

// during returns a function that returns true for a time d.
func during(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().Before(end) }
}

// times returns a function that returns true n times.
func times(n int) func() bool {
	var left atomic.Int64
	left.Store(int64(n))
	return func() bool { return left.Add(-1) >= 0 }
}
