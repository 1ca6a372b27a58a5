package audit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// maxLines, by default, and maxBytes bound the lines in a queue.
	maxLines = 10_000
	maxBytes = 64 << 20
	// batchLines and batchBytes bound a batch by default, and batchWait is how long its first
	// line waits for others.
	batchLines = 400
	batchBytes = 4 << 20
	batchWait  = time.Second
)

// deliverFunc returns how many lines of a batch, from the first, were delivered. It does not
// repeat anything once stopping is closed.
type deliverFunc func(ctx context.Context, stopping <-chan struct{}, batch [][]byte) int

// queue delivers lines in batches, so that requests do not wait for their output. Lines
// that it has no space for, or cannot deliver, are dropped and counted.
type queue struct {
	lines   chan []byte
	bytes   atomic.Int64 // of lines
	dropped prometheus.Counter
	deliver deliverFunc
	// most and bytesOfBatch bound a batch, and limiter, if it is set, batches per second.
	most, bytesOfBatch int
	wait               time.Duration
	limiter            flowcontrol.RateLimiter
	// next is a line that the last batch had no room for; nil for none.
	next     []byte
	stopping chan struct{}
	ended    chan struct{}
	// ctx ends when the time to stop is over.
	ctx    context.Context
	cancel context.CancelFunc
}

func newQueue(dropped prometheus.Counter, deliver deliverFunc) *queue {
	q := &queue{lines: make(chan []byte, maxLines), dropped: dropped, deliver: deliver, most: batchLines, bytesOfBatch: batchBytes, wait: batchWait, stopping: make(chan struct{}), ended: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// add adds a line unless the queue is full, and reports whether it has.
func (q *queue) add(line []byte) bool {
	size := int64(len(line))
	if q.bytes.Add(size) <= maxBytes {
		select {
		case q.lines <- line:
			return true
		default:
		}
	}
	q.bytes.Add(-size)
	q.dropped.Inc()
	return false
}

// run delivers batches until close is called, and then what is left.
func (q *queue) run(context.Context) error {
	defer close(q.ended)
	for {
		if q.next != nil {
			q.send(q.next)
			continue
		}
		select {
		case first := <-q.lines:
			q.send(first)
		case <-q.stopping:
			for q.next != nil || len(q.lines) > 0 {
				if q.next == nil {
					q.next = <-q.lines
				}
				q.send(q.next)
			}
			return nil
		}
	}
}

// send collects a batch and delivers it.
func (q *queue) send(first []byte) {
	batch, size := [][]byte{first}, len(first)
	q.next = nil
	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	for full := false; !full && len(batch) < q.most && size < q.bytesOfBatch; {
		select {
		case line := <-q.lines:
			if full = size+len(line) > q.bytesOfBatch; full {
				q.next = line
				continue
			}
			batch, size = append(batch, line), size+len(line)
		case <-timer.C:
			full = true
		case <-q.stopping:
			full = len(q.lines) == 0
		}
	}
	q.throttle()
	q.dropped.Add(float64(len(batch) - q.deliver(q.ctx, q.stopping, batch)))
	q.bytes.Add(-int64(size))
}

// throttle waits until another batch may be sent, or the queue stops.
func (q *queue) throttle() {
	if q.limiter == nil {
		return
	}
	ctx, cancel := context.WithCancel(q.ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-q.stopping:
			cancel()
		case <-done:
		}
	}()
	_ = q.limiter.Wait(ctx) // what is left is sent at once when the queue stops
}

// close returns when all lines have been delivered, or ctx ends.
func (q *queue) close(ctx context.Context) {
	close(q.stopping)
	select {
	case <-q.ended:
	case <-ctx.Done():
	}
	q.cancel()
}
