package tracing

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
)

// scope names the instrumentation in the spans.
const scope = "github.com/portico-platform/portico"

// Span is a step of a trace. The zero value records nothing.
type Span struct{ span trace.Span }

// Start begins a step in the trace of ctx. The context is that of the step. Without a
// trace it returns ctx and the zero Span.
func Start(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

// StartCall is like Start, for a call of another system, such as etcd.
func StartCall(ctx context.Context, system, operation string) (context.Context, Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, Span{}
	}
	ctx, s := start(ctx, system+"."+operation, trace.SpanKindClient)
	s.Set("peer.service", system)
	return ctx, s
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{span}
}

// In returns a context with the span, for a log line or a measurement after it.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Past records a step that began at a time and ends now.
func Past(ctx context.Context, name string, began time.Time) {
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		_, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithTimestamp(began))
		span.End()
	}
}

// Recording reports whether the span is part of a trace.
func (s Span) Recording() bool { return s.span != nil }

// Rename replaces the name that the span was begun with.
func (s Span) Rename(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Set adds an attribute. Values come from a bounded set, or are names: never the
// content of objects.
func (s Span) Set(key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// SetInt adds an attribute.
func (s Span) SetInt(key string, value int64) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int64(key, value))
	}
}

// End ends the span with the outcome of the step. The reason of an error is recorded,
// and its message is not: it may quote the content of objects.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		name, fault := errorType(err)
		s.Set("error.type", name)
		if fault {
			s.span.SetStatus(codes.Error, name)
		}
	}
	s.span.End()
}

// errorType returns what names an error in a trace, and whether the service is at fault.
func errorType(err error) (name string, fault bool) {
	var s *services.Status
	switch {
	case errors.As(err, &s):
		return s.Reason, s.Code >= http.StatusInternalServerError
	case errors.Is(err, context.Canceled):
		return "Canceled", false
	}
	if code := status.Code(err); code != grpccodes.Unknown {
		return code.String(), serverFault(code)
	}
	return "Unknown", true
}

// serverFault reports whether a code of gRPC is for failures, and not for refusals.
func serverFault(c grpccodes.Code) bool {
	switch c {
	case grpccodes.Internal, grpccodes.Unavailable, grpccodes.DeadlineExceeded, grpccodes.DataLoss, grpccodes.Unimplemented:
		return true
	}
	return false
}

// TraceID returns the ID of the trace of ctx; empty without one.
func TraceID(ctx context.Context) string {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsSampled() {
		return ""
	}
	return c.TraceID().String()
}
