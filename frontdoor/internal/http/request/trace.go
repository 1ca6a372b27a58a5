package request

import (
	"context"

	"github.com/portico-platform/portico/services/kit/tracing"
)

// TimingHeader requests the header Server-Timing in the response: with TimingAdmission the times
// of admission, with TimingStages those of all stages, if the user may have them.
const (
	TimingHeader    = "Portico-Server-Timing"
	TimingAdmission = "true"
	TimingStages    = "stages"
)

// Trace is the trace of a request; nil is that of one that is not sampled.
type Trace struct {
	// Root is the span of the whole request.
	Root tracing.Span
	// Origin is where the request comes from. Until its caller is known, a request that
	// names a span of its client has no Root.
	Origin tracing.Origin

	stage  tracing.Span
	within context.Context // of the stage before this one
}

// In returns a context with the span of the whole request, for log lines and measurements.
func (t *Trace) In(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return t.Root.In(ctx)
}

// Enter begins the span of a stage of the pipeline. The calls of the stage are part of it.
func (r *Request) Enter(stage string) {
	if r.Trace == nil {
		return
	}
	within := r.Context()
	ctx, span := tracing.Start(within, stage)
	if span.Recording() {
		r.Trace.stage, r.Trace.within = span, within
		r.Request = r.WithContext(ctx)
	}
}

// Leave ends the span of the stage, if it has one that has not ended yet.
func (r *Request) Leave(err error) {
	if r.Trace == nil || !r.Trace.stage.Recording() {
		return
	}
	r.Trace.stage.End(err)
	r.Request = r.WithContext(r.Trace.within)
	r.Trace.stage, r.Trace.within = tracing.Span{}, nil
}
