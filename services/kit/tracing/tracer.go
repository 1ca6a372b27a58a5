package tracing

import (
	"context"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

const (
	// askedPerSecond and askedBurst bound the traces that clients request. Those of
	// --trace-sampling are bounded by it.
	askedPerSecond = 20
	askedBurst     = 40
	// shutdownWithin bounds how long a collector can delay the end of the process.
	shutdownWithin = 2 * time.Second
)

// Tracer begins the traces of a process. A nil Tracer begins none.
type Tracer struct {
	provider *trace.TracerProvider
	options  []trace.TracerProviderOption // of provider
	tracer   api.Tracer
	sampling float64
	asked    *rate.Limiter
}

// newTracer returns a Tracer that samples a share of the requests.
func newTracer(options []trace.TracerProviderOption, sampling float64) *Tracer {
	provider := trace.NewTracerProvider(options...)
	return &Tracer{provider: provider, options: options, tracer: provider.Tracer(scope), sampling: sampling,
		asked: rate.NewLimiter(askedPerSecond, askedBurst)}
}

// Origin is where a request comes from.
type Origin struct {
	// Client is the span of the client that the request names; the zero value is none.
	Client api.SpanContext
	// Trusted is true for a client that may request a trace, and choose its ID.
	Trusted bool
	// Began is when the request arrived.
	Began time.Time
}

// Begin begins the trace of a request, if it is sampled: a trusted client that sampled
// its own span has it continued, at most askedPerSecond times a second. Of all other
// requests the configured share is sampled, each in a trace of its own whose ID
// the client has no influence on, linked to the client's span. The caller gives the span
// its name.
func (t *Tracer) Begin(ctx context.Context, o Origin) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	switch {
	case o.Trusted && o.Client.IsValid():
		if !o.Client.IsSampled() || !t.asked.Allow() {
			return ctx, Span{}
		}
		return t.begin(api.ContextWithRemoteSpanContext(ctx, o.Client), o.Began)
	case t.sampling < 1 && rand.Float64() >= t.sampling:
		return ctx, Span{}
	case o.Client.IsValid():
		return t.begin(ctx, o.Began, api.WithLinks(api.Link{SpanContext: o.Client.WithTraceState(api.TraceState{})}))
	}
	return t.begin(ctx, o.Began)
}

func (t *Tracer) begin(ctx context.Context, began time.Time, options ...api.SpanStartOption) (context.Context, Span) {
	ctx, span := t.tracer.Start(ctx, "request", append(options, api.WithSpanKind(api.SpanKindServer), api.WithTimestamp(began))...)
	return ctx, Span{span}
}

// Enabled reports whether the process sends spans anywhere.
func (t *Tracer) Enabled() bool { return t != nil }

// Shutdown sends what is still in the queue until ctx ends, but not for longer than
// shutdownWithin.
func (t *Tracer) Shutdown(ctx context.Context) {
	if t != nil {
		ctx, cancel := context.WithTimeout(ctx, shutdownWithin)
		defer cancel()
		_ = t.provider.Shutdown(ctx) // what has not been sent by now is dropped
	}
}
