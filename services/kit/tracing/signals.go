package tracing

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// Observe adds a value to a histogram, with the trace of ctx as its exemplar.
func Observe(ctx context.Context, h prometheus.Observer, value float64) {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		if exemplars, ok := h.(prometheus.ExemplarObserver); ok {
			exemplars.ObserveWithExemplar(value, prometheus.Labels{"trace_id": c.TraceID().String()})
			return
		}
	}
	h.Observe(value)
}

// LogHandler adds trace_id and span_id to the records of a context with a trace.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}

var _ slog.Handler = logHandler{}
