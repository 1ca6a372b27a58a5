// Package collector is an OpenTelemetry collector for tests: it receives spans over
// gRPC and keeps them.
package collector

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a received span.
type Span struct {
	Service, Name      string
	Trace, ID, Parent  string // in hexadecimal; Parent is empty for the root of a trace
	Links              []Link
	Attributes         map[string]string // those that are strings
	Failed             bool
	Duration           time.Duration
	StartedAt, EndedAt time.Time
}

// Link names another span.
type Link struct{ Trace, ID string }

// Collector receives spans.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer
	// Address is where it listens, as for --otlp-endpoint.
	Address string

	mu      sync.Mutex
	spans   []Span
	changed chan struct{} // closed when spans arrive
}

// Start starts a collector on a loopback address, for as long as the test runs.
func Start(t testing.TB) *Collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{Address: listener.Addr().String(), changed: make(chan struct{})}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // until it is stopped
	t.Cleanup(server.Stop)
	return c
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		service := texts(resource.GetResource().GetAttributes())["service.name"]
		for _, spans := range resource.GetScopeSpans() {
			for _, s := range spans.GetSpans() {
				c.spans = append(c.spans, received(service, s))
			}
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func received(service string, s *tracepb.Span) Span {
	out := Span{Service: service, Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Attributes: texts(s.GetAttributes()),
		Failed:    s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		StartedAt: time.Unix(0, int64(s.GetStartTimeUnixNano())), EndedAt: time.Unix(0, int64(s.GetEndTimeUnixNano()))}
	out.Duration = out.EndedAt.Sub(out.StartedAt)
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, Link{hex.EncodeToString(l.GetTraceId()), hex.EncodeToString(l.GetSpanId())})
	}
	return out
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		if v, ok := a.GetValue().GetValue().(*commonpb.AnyValue_StringValue); ok {
			out[a.GetKey()] = v.StringValue
		}
	}
	return out
}

// Spans returns what has been received so far.
func (c *Collector) Spans() []Span {
	spans, _ := c.state()
	return spans
}

func (c *Collector) state() ([]Span, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...), c.changed
}

// Wait returns the received spans once they are enough, or fails the test after a while.
func (c *Collector) Wait(t testing.TB, enough func([]Span) bool) []Span {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		spans, changed := c.state()
		if enough(spans) {
			return spans
		}
		select {
		case <-changed:
		case <-deadline:
			for _, s := range spans {
				t.Logf("%s %s %s < %s %s %v", s.Service, s.Trace, s.ID, s.Parent, s.Name, s.Links)
			}
			t.Fatal("the expected spans have not been received")
		}
	}
}
