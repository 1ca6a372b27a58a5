package audit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxLines and maxBytes bound the lines in a queue.
	maxLines = 10_000
	maxBytes = 64 << 20
	// batchLines and batchBytes bound a batch, and batchWait is how long its first line
	// waits for others.
	batchLines = 400
	batchBytes = 4 << 20
	batchWait  = time.Second
)

// queue delivers lines in batches, so that requests do not wait for their output. Lines
// that it has no space for, or cannot deliver, are dropped and counted.
type queue struct {
	lines   chan []byte
	bytes   atomic.Int64 // of lines
	dropped prometheus.Counter
	// deliver returns how many lines of a batch, from the first, were delivered. It does not
	// repeat anything once stopping is closed.
	deliver  func(ctx context.Context, stopping <-chan struct{}, batch [][]byte) int
	stopping chan struct{}
	ended    chan struct{}
	// ctx ends when the time to stop is over.
	ctx    context.Context
	cancel context.CancelFunc
}

func newQueue(dropped prometheus.Counter, deliver func(ctx context.Context, stopping <-chan struct{}, batch [][]byte) int) *queue {
	q := &queue{lines: make(chan []byte, maxLines), dropped: dropped, deliver: deliver, stopping: make(chan struct{}), ended: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// add adds a line unless the queue is full.
func (q *queue) add(line []byte) {
	size := int64(len(line))
	if q.bytes.Add(size) <= maxBytes {
		select {
		case q.lines <- line:
			return
		default:
		}
	}
	q.bytes.Add(-size)
	q.dropped.Inc()
}

// run delivers batches until close is called, and then what is left.
func (q *queue) run(context.Context) error {
	defer close(q.ended)
	for {
		select {
		case first := <-q.lines:
			q.send(first)
		case <-q.stopping:
			for len(q.lines) > 0 {
				q.send(<-q.lines)
			}
			return nil
		}
	}
}

// send collects a batch and delivers it.
func (q *queue) send(first []byte) {
	batch, size := [][]byte{first}, len(first)
	timer := time.NewTimer(batchWait)
	defer timer.Stop()
	for full := false; !full && len(batch) < batchLines && size < batchBytes; {
		select {
		case line := <-q.lines:
			batch, size = append(batch, line), size+len(line)
		case <-timer.C:
			full = true
		case <-q.stopping:
			full = len(q.lines) == 0
		}
	}
	q.dropped.Add(float64(len(batch) - q.deliver(q.ctx, q.stopping, batch)))
	q.bytes.Add(-int64(size))
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
