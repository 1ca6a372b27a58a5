package frontdoor

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
)

const clientTrace, clientSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// ask sends a request of a user through the stages that begin traces, and returns its
// spans.
func ask(t *testing.T, sampling float64, groups []string, header http.Header) []collector.Span {
	t.Helper()
	received := collector.Start(t)
	tracer, err := tracing.New(tracing.Config{Endpoint: received.Address, Sampling: sampling,
		Process: tracing.Process{Name: "frontdoor", Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	d := &door{tracer: tracer}
	authenticated := func(next request.Handler) request.Handler {
		return func(w http.ResponseWriter, r *request.Request) error {
			r.Caller = services.UserInfo{Name: "user", Groups: groups}
			return next(w, r)
		}
	}
	handle := request.Handler(func(http.ResponseWriter, *request.Request) error { return services.Unavailable("for now") })
	for _, s := range slices.Backward([]Stage{{Name: "traced", Wrap: d.traced}, {Name: "authenticated", Wrap: authenticated, Waits: true},
		{Name: "joined", Wrap: d.joined}}) {
		handle = d.spanned(s, handle)
	}
	r := &request.Request{Request: httptest.NewRequest("GET", "/version", nil), Verb: "get"}
	r.Header = header
	if err := handle(httptest.NewRecorder(), r); err == nil {
		t.Error("the error of the handler was lost")
	}
	tracer.Shutdown(context.Background()) // which sends the spans
	return received.Spans()
}

// TestWhoseTraceIsContinued: only an administrator has a trace continued; anybody else's
// span is linked to, if the request is sampled anyway.
func TestWhoseTraceIsContinued(t *testing.T) {
	administrators := []string{services.GroupMasters}
	header := http.Header{"Traceparent": {"00-" + clientTrace + "-" + clientSpan + "-01"}}
	for _, c := range []struct {
		what     string
		sampling float64
		groups   []string
		header   http.Header
		spans    int
		parent   string
		links    int
	}{
		{"nobody asks", 0, administrators, nil, 0, "", 0},
		{"a user asks", 0, []string{services.GroupAuthenticated}, header, 0, "", 0},
		{"an administrator asks", 0, administrators, header, 2, clientSpan, 0},
		{"all are sampled", 1, nil, nil, 2, "", 0},
		{"all are sampled, a user asks", 1, nil, header, 2, "", 1},
		{"all are sampled, an administrator asks", 1, administrators, header, 2, clientSpan, 0},
	} {
		spans := ask(t, c.sampling, c.groups, c.header)
		if len(spans) != c.spans {
			t.Errorf("%s: %d spans, want %d", c.what, len(spans), c.spans)
			continue
		}
		root := slices.IndexFunc(spans, func(s collector.Span) bool { return s.Name == "get nonresource" })
		if c.spans == 0 {
			continue
		}
		if root < 0 {
			t.Errorf("%s: no root in %+v", c.what, spans)
			continue
		}
		if s := spans[root]; s.Parent != c.parent || len(s.Links) != c.links || !s.Failed || (s.Trace == clientTrace) != (c.parent != "") {
			t.Errorf("%s: root %+v", c.what, s)
		}
		if s := spans[1-root]; s.Name != "authenticated" || s.Parent != spans[root].ID {
			t.Errorf("%s: stage %+v", c.what, s)
		}
	}
}

// TestHealthIsNotTraced: health checks without credentials are frequent, and of no
// interest.
func TestHealthIsNotTraced(t *testing.T) {
	tracer := &tracing.Tracer{}
	d := &door{tracer: tracer}
	r := &request.Request{Request: httptest.NewRequest("GET", "/livez", nil), Health: true}
	if err := d.traced(func(_ http.ResponseWriter, r *request.Request) error { return nil })(httptest.NewRecorder(), r); err != nil || r.Trace != nil {
		t.Errorf("got %v, %v", r.Trace, err)
	}
}
