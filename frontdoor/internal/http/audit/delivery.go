package audit

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/portico-platform/portico/services/kit/run"
)

// Modes of an output.
const (
	modeBlocking = "blocking"
	modeStrict   = "blocking-strict"
	modeBatch    = "batch"
)

const (
	// leastEvent is the smallest limit of an event: what is left of one without bodies and long texts.
	leastEvent = 4 << 10
	// splitBytes is the default limit of a batch that is split.
	splitBytes = 10 << 20
)

// delivery is how events reach an output: the flags that file and webhook have in common.
type delivery struct {
	mode     string
	buffer   int // lines that wait
	size     int // lines of a batch
	wait     time.Duration
	throttle bool
	qps      float32
	burst    int
	truncate bool
	maxBatch int64
	maxEvent int64
	version  string
}

// register adds the flags with a prefix, audit-log- or audit-webhook-.
func (d *delivery) register(fs *pflag.FlagSet, prefix, mode string) {
	fs.StringVar(&d.mode, prefix+"mode", mode, "blocking: a request waits until its event is written; blocking-strict: a request whose event RequestReceived cannot be written "+
		"is refused, too; batch: events are written in the background, and dropped and counted when too many wait")
	fs.IntVar(&d.buffer, prefix+"batch-buffer-size", maxLines, "number of events that may wait in mode batch")
	fs.IntVar(&d.size, prefix+"batch-max-size", batchLines, "largest number of events of a batch")
	fs.DurationVar(&d.wait, prefix+"batch-max-wait", batchWait, "how long the first event of a batch waits for others")
	fs.BoolVar(&d.throttle, prefix+"batch-throttle-enable", true, "limit the number of batches per second, if batch-throttle-qps is set")
	fs.Float32Var(&d.qps, prefix+"batch-throttle-qps", 0, "average number of batches per second in mode batch; 0 for no limit")
	fs.IntVar(&d.burst, prefix+"batch-throttle-burst", 15, "number of batches that may follow each other at once after a pause")
	fs.BoolVar(&d.truncate, prefix+"truncate-enabled", false, "shorten events and split batches that are larger than the next two limits")
	fs.Int64Var(&d.maxBatch, prefix+"truncate-max-batch-size", splitBytes, "bytes of a batch, without what surrounds its events")
	fs.Int64Var(&d.maxEvent, prefix+"truncate-max-event-size", 100<<10, "bytes of an event; a longer one loses its bodies, then long texts, and is dropped if it is still longer")
	fs.StringVar(&d.version, prefix+"version", "", "apiVersion of the events, of which there is one; empty for that")
}

// check returns an error that names the invalid flag.
func (d *delivery) check(prefix, apiVersion string) error {
	switch {
	case d.mode != modeBlocking && d.mode != modeStrict && d.mode != modeBatch:
		return run.Usagef("--%smode: %q is none of blocking, blocking-strict and batch", prefix, d.mode)
	case d.version != "" && d.version != apiVersion:
		return run.Usagef("--%sversion: %q is not %s", prefix, d.version, apiVersion)
	case d.buffer < 1:
		return run.Usagef("--%sbatch-buffer-size: %d is less than 1", prefix, d.buffer)
	case d.size < 1:
		return run.Usagef("--%sbatch-max-size: %d is less than 1", prefix, d.size)
	case d.wait < 0:
		return run.Usagef("--%sbatch-max-wait: %s is negative", prefix, d.wait)
	case d.qps < 0:
		return run.Usagef("--%sbatch-throttle-qps: %v is negative", prefix, d.qps)
	case d.throttle && d.qps > 0 && d.burst < 1:
		return run.Usagef("--%sbatch-throttle-burst: %d is less than 1", prefix, d.burst)
	case d.truncate && d.maxEvent < leastEvent:
		return run.Usagef("--%struncate-max-event-size: %d is less than %d", prefix, d.maxEvent, leastEvent)
	case d.truncate && d.maxBatch < d.maxEvent:
		return run.Usagef("--%struncate-max-batch-size: %d is less than the size of an event", prefix, d.maxBatch)
	}
	return nil
}

// output returns an output whose events deliver receives: in batches, or each at once, one after the
// other, while its request waits. It delivers what is left when the node stops.
func (d *delivery) output(n *run.Node, what string, dropped prometheus.Counter, deliver deliverFunc) output {
	to := output{strict: d.mode == modeStrict, dropped: dropped}
	if d.truncate {
		to.most = int(d.maxEvent)
	}
	if d.mode != modeBatch {
		stopping := make(chan struct{})
		n.OnStop(func(context.Context) { close(stopping) })
		to.take = blocking(dropped, deliver, stopping)
		return to
	}
	q := d.queue(dropped, deliver)
	n.Go(what, q.run)
	n.OnStop(q.close)
	to.take = q.add
	return to
}

// blocking returns a function that delivers a line at once, and counts lines that are not delivered.
func blocking(dropped prometheus.Counter, deliver deliverFunc, stopping <-chan struct{}) func(line []byte) bool {
	return func(line []byte) bool {
		written := deliver(context.Background(), stopping, [][]byte{line}) == 1
		if !written {
			dropped.Inc()
		}
		return written
	}
}

// queue returns the queue of mode batch.
func (d *delivery) queue(dropped prometheus.Counter, deliver deliverFunc) *queue {
	q := newQueue(dropped, deliver)
	q.lines, q.most, q.wait = make(chan []byte, d.buffer), d.size, d.wait
	if d.throttle && d.qps > 0 {
		q.limiter = flowcontrol.NewTokenBucketRateLimiter(d.qps, d.burst)
	}
	if d.truncate {
		q.bytesOfBatch = int(d.maxBatch)
	}
	return q
}
