package tracing_test

import (
	"context"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	api "go.opentelemetry.io/otel/trace"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
)

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientParent = "00-" + clientTrace + "-00f067aa0ba902b7-01"
)

// newTracer returns a tracer that sends to an address, and its metrics.
func newTracer(t *testing.T, address string, sampling float64) (*tracing.Tracer, *prometheus.Registry) {
	t.Helper()
	metrics := prometheus.NewRegistry()
	tracer, err := tracing.New(tracing.Config{Endpoint: address, Sampling: sampling,
		Process: tracing.Process{Name: "test", Metrics: metrics, Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		tracer.Shutdown(ctx)
	})
	return tracer, metrics
}

func client(t *testing.T, parent string) api.SpanContext {
	t.Helper()
	c := tracing.FromHeader(http.Header{"Traceparent": {parent}})
	if !c.IsValid() {
		t.Fatalf("%s is not valid", parent)
	}
	return c
}

// TestWhoDecidesAboutSampling: only a trusted client has influence on what is sampled
// and under which ID, and only so often.
func TestWhoDecidesAboutSampling(t *testing.T) {
	sampled, unsampled := client(t, clientParent), client(t, strings.TrimSuffix(clientParent, "01")+"00")
	for _, c := range []struct {
		what     string
		sampling float64
		origin   tracing.Origin
		want     string // none, own or client
	}{
		{"nobody asks", 0, tracing.Origin{}, "none"},
		{"anybody asks", 0, tracing.Origin{Client: sampled}, "none"},
		{"a trusted client asks", 0, tracing.Origin{Client: sampled, Trusted: true}, "client"},
		{"a trusted client declines", 1, tracing.Origin{Client: unsampled, Trusted: true}, "none"},
		{"all are sampled", 1, tracing.Origin{}, "own"},
		{"all are sampled, anybody names a span", 1, tracing.Origin{Client: sampled}, "own"},
		{"all are sampled, anybody declines", 1, tracing.Origin{Client: unsampled}, "own"},
	} {
		tracer, _ := newTracer(t, collector.Start(t).Address, c.sampling)
		ctx, span := tracer.Begin(t.Context(), c.origin)
		got := "none"
		switch id := tracing.TraceID(ctx); {
		case id == clientTrace:
			got = "client"
		case id != "":
			got = "own"
		}
		if got != c.want || span.Recording() != (got != "none") {
			t.Errorf("%s: trace %s (recording %v), want %s", c.what, got, span.Recording(), c.want)
		}
	}
}

func TestTrustedClientsAreLimited(t *testing.T) {
	tracer, _ := newTracer(t, collector.Start(t).Address, 0)
	origin := tracing.Origin{Client: client(t, clientParent), Trusted: true}
	begun := 0
	for range 1000 {
		if _, span := tracer.Begin(t.Context(), origin); span.Recording() {
			begun++
			span.End(nil)
		}
	}
	if begun < 40 || begun > 200 {
		t.Errorf("%d of 1000 traces were begun, want about 40", begun)
	}
}

func TestFromHeader(t *testing.T) {
	for _, c := range []struct {
		what   string
		header http.Header
		valid  bool
		state  string
	}{
		{"none", http.Header{}, false, ""},
		{"one", http.Header{"Traceparent": {clientParent}}, true, ""},
		{"two", http.Header{"Traceparent": {clientParent, clientParent}}, false, ""},
		{"no ID", http.Header{"Traceparent": {"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"}}, false, ""},
		{"not hexadecimal", http.Header{"Traceparent": {strings.Replace(clientParent, "4b", "xy", 1)}}, false, ""},
		{"of a later version", http.Header{"Traceparent": {"01" + clientParent[2:] + "-more"}}, true, ""},
		{"too long", http.Header{"Traceparent": {"01" + clientParent[2:] + "-" + strings.Repeat("a", 100)}}, false, ""},
		{"with state", http.Header{"Traceparent": {clientParent}, "Tracestate": {"a=1,b=2"}}, true, "a=1,b=2"},
		{"with malformed state", http.Header{"Traceparent": {clientParent}, "Tracestate": {"a=1,,=="}}, true, ""},
		{"with long state", http.Header{"Traceparent": {clientParent}, "Tracestate": {"a=" + strings.Repeat("x", 600)}}, true, ""},
	} {
		got := tracing.FromHeader(c.header)
		if got.IsValid() != c.valid || got.TraceState().String() != c.state {
			t.Errorf("%s: valid %v, state %q", c.what, got.IsValid(), got.TraceState())
		}
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	received := collector.Start(t)
	tracer, metrics := newTracer(t, received.Address, 0)
	began := time.Now().Add(-time.Second)
	ctx, root := tracer.Begin(t.Context(), tracing.Origin{Client: client(t, clientParent), Trusted: true, Began: began})
	step, span := tracing.Start(ctx, "stored")
	mark := tracing.Mark(step)
	span.Set("key", "value")
	span.End(services.Unavailable("secret content of an object"))
	tracing.Past(ctx, "authenticated", began)
	tracer.Resume(context.Background(), "published", mark).End(nil)
	tracing.Linked(ctx, "delivered", mark).End(nil)
	root.Rename("update pods")
	root.End(nil)

	spans := map[string]collector.Span{}
	for _, s := range received.Wait(t, func(s []collector.Span) bool { return len(s) == 5 }) {
		spans[s.Name] = s
		for key, value := range s.Attributes {
			if strings.Contains(value, "secret") {
				t.Errorf("%s of %s shows %q", key, s.Name, value)
			}
		}
	}
	id := spans["update pods"].ID
	for name, parent := range map[string]string{"update pods": "00f067aa0ba902b7", "stored": id, "authenticated": id, "delivered": id, "published": spans["stored"].ID} {
		if s := spans[name]; s.Trace != clientTrace || s.Parent != parent || s.Service != "test" {
			t.Errorf("%s: %+v, want the parent %s", name, s, parent)
		}
	}
	if s := spans["stored"]; !s.Failed || s.Attributes["error.type"] != services.ReasonServiceUnavailable || s.Attributes["key"] != "value" {
		t.Errorf("stored: %+v", s)
	}
	if links := spans["delivered"].Links; len(links) != 1 || links[0] != (collector.Link{Trace: clientTrace, ID: spans["stored"].ID}) {
		t.Errorf("delivered links to %v", links)
	}
	if spans["authenticated"].Duration < time.Second || spans["update pods"].Duration < time.Second {
		t.Errorf("spans that began a second ago took %s and %s", spans["authenticated"].Duration, spans["update pods"].Duration)
	}
	awaitOutcome(t, metrics, "sent", 5)
}

// outcome returns the number of spans with an outcome.
func outcome(t *testing.T, metrics *prometheus.Registry, outcome string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "portico_trace_spans_total" && m.GetLabel()[0].GetValue() == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestASilentCollectorDelaysNothing: one that takes the connection and never answers.
func TestASilentCollectorDelaysNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	tracer, metrics := newTracer(t, listener.Addr().String(), 1)
	const spans = 50_000
	var longest time.Duration
	for range spans {
		began := time.Now()
		_, span := tracer.Begin(t.Context(), tracing.Origin{Began: began})
		span.End(nil)
		longest = max(longest, time.Since(began))
	}
	// One that waited for the collector would wait for the five seconds of a batch. So would the
	// shutdown.
	const waits = 4 * time.Second
	if t.Logf("one span took %s", longest); longest > waits {
		t.Error("a span has waited")
	}
	if dropped := outcome(t, metrics, "dropped"); dropped < spans-10_000 {
		t.Errorf("%v of %d spans were counted as dropped", dropped, spans)
	}
	if waiting := testutil.ToFloat64(gauge(metrics)); waiting > 4096 {
		t.Errorf("%v spans are kept", waiting)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	tracer.Shutdown(ctx)
	if took := time.Since(began); took > waits {
		t.Errorf("the shutdown took %s, with 200 ms for it", took)
	}
}

// gauge is the number of waiting spans.
func gauge(metrics *prometheus.Registry) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "waiting"}, func() float64 {
		families, _ := metrics.Gather()
		for _, family := range families {
			if family.GetName() == "portico_trace_spans_waiting" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return math.Inf(1)
	})
}

func TestAnUnreachableCollectorIsCounted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	tracer, metrics := newTracer(t, address, 1)
	_, span := tracer.Begin(t.Context(), tracing.Origin{})
	span.End(nil)
	awaitOutcome(t, metrics, "failed", 1)
}

// awaitOutcome waits until so many spans are counted.
func awaitOutcome(t *testing.T, metrics *prometheus.Registry, what string, want float64) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for outcome(t, metrics, what) != want {
		select {
		case <-deadline:
			t.Fatalf("%v spans are counted as %s, want %v", outcome(t, metrics, what), what, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		config tracing.Config
		err    string
	}{
		{tracing.Config{}, ""},
		{tracing.Config{Endpoint: "127.0.0.1:4317"}, ""},
		{tracing.Config{Endpoint: "http://localhost:4317"}, ""},
		{tracing.Config{Endpoint: "collector.example:4317"}, ""},
		{tracing.Config{Endpoint: "https://[2001:db8::1]:4317/"}, ""},
		{tracing.Config{Endpoint: "collector.example"}, "--otlp-endpoint: "},
		{tracing.Config{Endpoint: "http://collector.example:4317"}, "use https://collector.example:4317"},
		{tracing.Config{Endpoint: "ftp://127.0.0.1:4317"}, "--otlp-endpoint: "},
		{tracing.Config{Endpoint: "https://host:4317/v1/traces"}, "--otlp-endpoint: "},
		{tracing.Config{Endpoint: "https://user:pass@host:4317"}, "--otlp-endpoint: "},
		{tracing.Config{Endpoint: "127.0.0.1:4317", CAFile: "ca.crt"}, "--otlp-ca-file needs"},
		{tracing.Config{Endpoint: "host:4317", CAFile: "/does/not/exist"}, "--otlp-ca-file: "},
		{tracing.Config{Endpoint: "127.0.0.1:4317", Sampling: 1.5}, "--trace-sampling: 1.5 is not between 0 and 1"},
		{tracing.Config{Endpoint: "127.0.0.1:4317", Sampling: math.NaN()}, "--trace-sampling: "},
		{tracing.Config{Sampling: 0.5}, "--trace-sampling has no effect without --otlp-endpoint"},
		{tracing.Config{CAFile: "ca.crt"}, "--otlp-ca-file has no effect without --otlp-endpoint"},
	} {
		c.config.Metrics, c.config.Log = prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
		tracer, err := tracing.New(c.config)
		if tracer.Enabled() != (err == nil && c.config.Endpoint != "") {
			t.Errorf("%+v: enabled %v, %v", c.config, tracer.Enabled(), err)
		}
		tracer.Shutdown(t.Context())
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%+v: error %v, want %q", c.config, err, c.err)
		}
	}
}
