// Package load is what a load on a cluster API service consists of: clients that send requests
// concurrently, at a rate or as fast as possible, the objects that they write, and watchers. The
// benchmark and portico load are built with it.
package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/services/kit/retry"
)

// Samples are the operations of one run.
type Samples struct {
	Operations int
	Latencies  []time.Duration // of all operations, or of a sample
	Bytes      int64           // received
}

// Each runs work n times concurrently and returns the first error, which cancels the
// others.
func Each(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
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

// Pause returns after a time, or with the error of ctx when that ends.
func Pause(ctx context.Context, d time.Duration) error {
	retry.Pause(ctx, d)
	return ctx.Err()
}

// Clients are connections that send requests concurrently.
type Clients []*wire.Conn

// Connect opens a connection per client. They are closed when ctx ends.
func Connect(ctx context.Context, to wire.Server, n int) (Clients, error) {
	all := make(Clients, n)
	for i := range all {
		c, err := Dial(ctx, to)
		if err != nil {
			return nil, err
		}
		all[i] = c
	}
	return all, nil
}

// Dial opens a connection that is closed when ctx ends.
func Dial(ctx context.Context, to wire.Server) (*wire.Conn, error) {
	c, err := wire.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, c.Close)
	return c, nil
}

// Operation is one request of a client; it returns the size of the response.
type Operation func(client int, c *wire.Conn) (int64, error)

// Run runs operations on all clients while next returns true, and records their latencies.
// The first error ends it.
func (all Clients) Run(ctx context.Context, next func() bool, do Operation) (Samples, error) {
	var lock sync.Mutex
	var total Samples
	err := Each(ctx, len(all), func(ctx context.Context, i int) error {
		stop := context.AfterFunc(ctx, all[i].Close)
		defer stop()
		var own Samples
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

// During returns a function that returns true for a time d.
func During(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().Before(end) }
}

// Times returns a function that returns true n times.
func Times(n int) func() bool {
	var left atomic.Int64
	left.Store(int64(n))
	return func() bool { return left.Add(-1) >= 0 }
}

// Schedule gives the turns of all clients together.
type Schedule struct {
	began time.Time
	rate  float64
	turns int64
	taken atomic.Int64
}

// NewSchedule returns a schedule that begins now, with rate turns a second and a number of turns;
// 0 is no limit.
func NewSchedule(rate float64, turns int64) *Schedule {
	return &Schedule{began: time.Now(), rate: rate, turns: turns}
}

// Next waits for the next turn, and returns its number, from 1, and when it is due; false after the
// last one, and when ctx ends. A turn that is late is due at its time, so that a slow response does
// not hide how long the next request waits.
func (s *Schedule) Next(ctx context.Context) (n int64, due time.Time, more bool) {
	n = s.taken.Add(1)
	if s.turns > 0 && n > s.turns {
		return n, due, false
	}
	if s.rate == 0 {
		return n, time.Now(), ctx.Err() == nil
	}
	due = s.began.Add(time.Duration(float64(n) / s.rate * float64(time.Second)))
	return n, due, Pause(ctx, time.Until(due)) == nil
}
