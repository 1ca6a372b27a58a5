package tracing

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// maxSteps bounds the steps of a Recording. Later ones are not kept.
const maxSteps = 64

// Step is a span that has ended.
type Step struct {
	Name string
	// Start is the time since the beginning of the recording.
	Start, Took time.Duration
}

// Recording keeps the steps that one request takes in this process. It is safe for
// concurrent use.
type Recording struct {
	began time.Time
	mu    sync.Mutex
	steps []Step
}

// Record begins a span whose steps are kept in a Recording, which began at a time. They are
// also sent to the collector, if there is one; the Tracer may be nil. The caller has
// decided that the client may request that.
func (t *Tracer) Record(ctx context.Context, name string, began time.Time) (context.Context, Span, *Recording) {
	r := &Recording{began: began}
	options := []trace.TracerProviderOption{trace.WithSampler(trace.AlwaysSample()), trace.WithResource(resource.Empty()), trace.WithRawSpanLimits(limits)}
	if t != nil {
		options = t.options
	}
	// The provider is not shut down: that would also end the queue that it shares.
	provider := trace.NewTracerProvider(append(slices.Clip(options), trace.WithSpanProcessor(r))...)
	ctx, span := provider.Tracer(scope).Start(ctx, name, api.WithSpanKind(api.SpanKindServer), api.WithTimestamp(began))
	return ctx, Span{span}, r
}

// Steps returns the steps that have ended, in the order in which they began. A step that
// contains others is before them.
func (r *Recording) Steps() []Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	steps := slices.Clone(r.steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Took, a.Took)) })
	return steps
}

// OnEnd implements trace.SpanProcessor.
func (r *Recording) OnEnd(s trace.ReadOnlySpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) < maxSteps {
		r.steps = append(r.steps, Step{s.Name(), s.StartTime().Sub(r.began), s.EndTime().Sub(s.StartTime())})
	}
}

// OnStart implements trace.SpanProcessor.
func (*Recording) OnStart(context.Context, trace.ReadWriteSpan) {}

// Shutdown implements trace.SpanProcessor.
func (*Recording) Shutdown(context.Context) error { return nil }

// ForceFlush implements trace.SpanProcessor.
func (*Recording) ForceFlush(context.Context) error { return nil }

var _ trace.SpanProcessor = (*Recording)(nil)
