package audit

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func dropped() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "dropped"})
}

// TestQueueIsBounded: beyond its lines and bytes a queue drops and counts; what it took is
// delivered in order when it stops.
func TestQueueIsBounded(t *testing.T) {
	var got []string
	q := newQueue(dropped(), func(_ context.Context, _ <-chan struct{}, batch [][]byte) int {
		if len(batch) > batchLines {
			t.Errorf("a batch of %d", len(batch))
		}
		for _, line := range batch {
			got = append(got, string(line))
		}
		return len(batch)
	})
	for i := range maxLines + 5 {
		q.add(fmt.Append(nil, i))
	}
	if n := testutil.ToFloat64(q.dropped); n != 5 {
		t.Errorf("%v dropped, want 5", n)
	}
	go func() { _ = q.run(t.Context()) }()
	q.close(t.Context())
	if len(got) != maxLines || q.bytes.Load() != 0 {
		t.Fatalf("%d delivered, %d bytes left", len(got), q.bytes.Load())
	}
	for i, line := range got {
		if line != fmt.Sprint(i) {
			t.Fatalf("line %d is %s", i, line)
		}
	}
	large := newQueue(dropped(), nil)
	for range 3 {
		large.add(make([]byte, maxBytes/2))
	}
	if n := testutil.ToFloat64(large.dropped); n != 1 || len(large.lines) != 2 {
		t.Errorf("%v dropped, %d taken", n, len(large.lines))
	}
}

// TestQueueStopsInTime: a delivery that hangs ends with the time to stop, and counts as dropped.
func TestQueueStopsInTime(t *testing.T) {
	started := make(chan struct{})
	q := newQueue(dropped(), func(ctx context.Context, _ <-chan struct{}, batch [][]byte) int {
		close(started)
		<-ctx.Done()
		return 0
	})
	go func() { _ = q.run(t.Context()) }()
	q.add([]byte("a"))
	<-started
	over, cancel := context.WithCancel(t.Context())
	cancel()
	q.close(over)
	<-q.ended
	if n := testutil.ToFloat64(q.dropped); n != 1 {
		t.Errorf("%v dropped", n)
	}
}
