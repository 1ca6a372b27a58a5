package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// markBytes is the length of a mark: a trace ID and a span ID.
const markBytes = 16 + 8

// Mark returns the span of ctx in the form of services.Change.Trace; nil without one.
func Mark(ctx context.Context) []byte {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return nil
	}
	c := span.SpanContext()
	traceID, spanID := c.TraceID(), c.SpanID()
	return append(traceID[:], spanID[:]...)
}

// marked returns the span of a mark; the zero value if it is none.
func marked(mark []byte) trace.SpanContext {
	if len(mark) != markBytes {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(mark[:16]), SpanID: trace.SpanID(mark[16:]),
		TraceFlags: trace.FlagsSampled, Remote: true})
}

// Resume begins a step in the trace of a mark: one that follows from the marked span,
// maybe long after it has ended. It records nothing if there is no mark.
func (t *Tracer) Resume(ctx context.Context, name string, mark []byte) Span {
	parent := marked(mark)
	if t == nil || !parent.IsValid() {
		return Span{}
	}
	_, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), name)
	return Span{span}
}

// Linked begins a step in the trace of ctx that the marked span has caused. It records
// nothing unless both are sampled.
func Linked(ctx context.Context, name string, mark []byte) Span {
	cause, current := marked(mark), trace.SpanFromContext(ctx)
	if !cause.IsValid() || !current.IsRecording() {
		return Span{}
	}
	_, span := current.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(trace.Link{SpanContext: cause}))
	return Span{span}
}
