package tracing_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// unsampled does everything that a request which is not sampled does.
func unsampled(ctx context.Context, tracer *tracing.Tracer, header http.Header, histogram prometheus.Observer) {
	ctx, root := tracer.Begin(ctx, tracing.Origin{Client: tracing.FromHeader(header)})
	step, span := tracing.Start(ctx, "stored")
	call, etcd := tracing.StartCall(step, "etcd", "txn")
	tracing.ToHeader(call, header)
	etcd.Set("key", tracing.TraceID(call))
	etcd.End(nil)
	span.SetInt("size", int64(len(tracing.Mark(step))))
	span.End(nil)
	tracer.Resume(ctx, "published", nil).End(nil)
	tracing.Linked(ctx, "delivered", nil).End(nil)
	tracing.Observe(root.In(ctx), histogram, 1)
	root.End(nil)
}

// TestNothingIsAllocatedWithoutATrace: neither when traces are off, nor for a request
// that is not sampled.
func TestNothingIsAllocatedWithoutATrace(t *testing.T) {
	on, _ := newTracer(t, collector.Start(t).Address, 0)
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seconds"})
	for what, tracer := range map[string]*tracing.Tracer{"off": nil, "not sampled": on} {
		ctx, header := t.Context(), http.Header{}
		if n := testing.AllocsPerRun(1000, func() { unsampled(ctx, tracer, header, histogram) }); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
		if len(header) != 0 {
			t.Errorf("%s: headers %v were added", what, header)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seconds"})
	b.Run("off", func(b *testing.B) {
		ctx, header := b.Context(), http.Header{}
		b.ReportAllocs()
		for b.Loop() {
			unsampled(ctx, nil, header, histogram)
		}
	})
}
