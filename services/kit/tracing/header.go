package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

const (
	// maxParent and maxState bound what is read of a request's headers. A traceparent
	// of version 00 has 55 characters; W3C requires at least 512 for tracestate.
	maxParent = 128
	maxState  = 512

	headerParent = "Traceparent"
	headerState  = "Tracestate"
	keyParent    = "traceparent"
	keyState     = "tracestate"
)

// FromHeader returns the span that a request names in the headers of W3C Trace Context;
// the zero value when it names none, or not in the form that is required.
func FromHeader(h http.Header) trace.SpanContext {
	parents := h[headerParent]
	if len(parents) != 1 || len(parents[0]) > maxParent {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{keyParent: parents[0]}
	if states := h[headerState]; len(states) == 1 && len(states[0]) <= maxState {
		carrier[keyState] = states[0]
	}
	return extract(carrier)
}

// ToHeader names the span of ctx in the headers of a request to another system. Without
// a trace it does nothing.
func ToHeader(ctx context.Context, h http.Header) {
	if trace.SpanFromContext(ctx).IsRecording() {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

func extract(carrier propagation.MapCarrier) trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// Conn returns a connection whose calls are spans of their trace, and named to the other
// side.
func Conn(c grpc.ClientConnInterface) grpc.ClientConnInterface { return conn{c} }

type conn struct{ grpc.ClientConnInterface }

// Invoke implements grpc.ClientConnInterface.
func (c conn) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	ctx, span := start(ctx, method[1:], trace.SpanKindClient)
	if !span.Recording() {
		return c.ClientConnInterface.Invoke(ctx, method, request, answer, options...)
	}
	span.Set("rpc.system", "grpc")
	err := c.ClientConnInterface.Invoke(ToCall(ctx), method, request, answer, options...)
	span.End(err)
	return err
}

// NewStream implements grpc.ClientConnInterface. The server's span is a child of the one of ctx.
func (c conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(ToCall(ctx), desc, method, options...)
}

// ToCall names the span of ctx in the metadata of a call of gRPC. Without a trace it
// returns ctx.
func ToCall(ctx context.Context) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for key, value := range carrier {
		ctx = metadata.AppendToOutgoingContext(ctx, key, value)
	}
	return ctx
}

// Continued makes the calls that a server answers spans of their callers' traces. It
// belongs behind whatever refuses callers.
func (t *Tracer) Continued(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if t == nil {
		return next(ctx, request)
	}
	parent := incoming(ctx)
	if !parent.IsSampled() {
		return next(ctx, request)
	}
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), info.FullMethod[1:], trace.WithSpanKind(trace.SpanKindServer))
	s := Span{span}
	s.Set("rpc.system", "grpc")
	answer, err := next(ctx, request)
	s.End(err)
	return answer, err
}

// OfCaller returns a context with the span that the caller of a gRPC method names.
func OfCaller(ctx context.Context) context.Context {
	if parent := incoming(ctx); parent.IsSampled() {
		return trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return ctx
}

func incoming(ctx context.Context) trace.SpanContext {
	parents := metadata.ValueFromIncomingContext(ctx, keyParent)
	if len(parents) != 1 || len(parents[0]) > maxParent {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{keyParent: parents[0]}
	if states := metadata.ValueFromIncomingContext(ctx, keyState); len(states) == 1 && len(states[0]) <= maxState {
		carrier[keyState] = states[0]
	}
	return extract(carrier)
}

var _ grpc.ClientConnInterface = conn{}
