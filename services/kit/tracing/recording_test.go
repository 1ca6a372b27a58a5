package tracing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// TestRecording: the steps of a request are kept in their order, also without a collector; with
// one they are sent to it too.
func TestRecording(t *testing.T) {
	received := collector.Start(t)
	sending, _ := newTracer(t, received.Address, 0)
	for what, tracer := range map[string]*tracing.Tracer{"no collector": nil, "a collector": sending} {
		ctx, root, recording := tracer.Record(t.Context(), "request", time.Now().Add(-time.Second))
		tracing.Past(ctx, "before", time.Now().Add(-time.Second))
		outer, stored := tracing.Start(ctx, "stored")
		_, call := tracing.StartCall(outer, "etcd", "txn")
		call.End(nil)
		stored.End(nil)
		_, open := tracing.Start(ctx, "open")
		var names []string
		for _, s := range recording.Steps() {
			names = append(names, s.Name)
			if s.Start < -time.Millisecond || s.Took < 0 || s.Name == "before" != (s.Took > 900*time.Millisecond) {
				t.Errorf("%s: %+v", what, s)
			}
		}
		if got := fmt.Sprint(names); got != "[before stored etcd.txn]" {
			t.Errorf("%s: %s", what, got)
		}
		open.End(nil)
		root.End(nil)
	}
	received.Wait(t, func(s []collector.Span) bool { return len(s) == 5 })
}

// TestRecordingIsBounded: a request with many steps keeps only so many.
func TestRecordingIsBounded(t *testing.T) {
	ctx, _, recording := (*tracing.Tracer)(nil).Record(t.Context(), "request", time.Now())
	for range 1000 {
		_, span := tracing.Start(ctx, "step")
		span.End(nil)
	}
	if n := len(recording.Steps()); n != 64 {
		t.Errorf("%d steps", n)
	}
}
