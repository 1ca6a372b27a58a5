package tracing_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// asked notes the metadata of the calls that it answers.
type asked struct {
	healthpb.UnimplementedHealthServer
	parents []string
}

func (a *asked) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	a.parents = metadata.ValueFromIncomingContext(ctx, "traceparent")
	_, span := tracing.Start(ctx, "within")
	span.End(nil)
	return nil, status.Error(codes.Unavailable, "for a reason")
}

// serve answers with a tracer, nil for none, and returns a client of it.
func serve(t *testing.T, tracer *tracing.Tracer) (*asked, healthpb.HealthClient) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, impl := grpc.NewServer(grpc.ChainUnaryInterceptor(tracer.Continued)), &asked{}
	healthpb.RegisterHealthServer(server, impl)
	go func() { _ = server.Serve(listener) }() // until it is stopped
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return impl, healthpb.NewHealthClient(tracing.Conn(conn))
}

func TestCallsContinueTheTrace(t *testing.T) {
	received := collector.Start(t)
	here, _ := newTracer(t, received.Address, 1)
	there, _ := newTracer(t, received.Address, 0)
	_, client := serve(t, there)
	ctx, root := here.Begin(t.Context(), tracing.Origin{})
	_, _ = client.Check(ctx, nil)
	root.End(nil)
	spans := received.Wait(t, func(s []collector.Span) bool { return len(s) == 4 })
	parents := map[string]string{}
	var way []string
	for _, s := range spans {
		parents[s.ID] = s.Parent
		if s.Name == "within" {
			way = append(way, s.ID)
		}
		if s.Trace != tracing.TraceID(ctx) {
			t.Errorf("%s is of another trace", s.Name)
		}
		if s.Name == "grpc.health.v1.Health/Check" && (!s.Failed || s.Attributes["error.type"] != "Unavailable") {
			t.Errorf("%+v does not show the error", s)
		}
	}
	for len(way) < 4 && way[len(way)-1] != "" {
		way = append(way, parents[way[len(way)-1]])
	}
	if len(way) != 4 || parents[way[3]] != "" {
		t.Errorf("the way from the innermost span to the root is %v", way)
	}
}

// TestCallsWithoutATrace: nothing is sent along, and a server without traces ignores
// what it is sent.
func TestCallsWithoutATrace(t *testing.T) {
	received := collector.Start(t)
	tracer, _ := newTracer(t, received.Address, 1)
	impl, client := serve(t, nil)
	if _, _ = client.Check(t.Context(), nil); len(impl.parents) != 0 {
		t.Errorf("a call without a trace was sent with %q", impl.parents)
	}
	ctx, root := tracer.Begin(t.Context(), tracing.Origin{})
	if _, _ = client.Check(ctx, nil); len(impl.parents) != 1 {
		t.Errorf("a call with a trace was sent with %q", impl.parents)
	}
	root.End(nil)
}

// TestForeignMetadata: what is no trace context is ignored.
func TestForeignMetadata(t *testing.T) {
	received := collector.Start(t)
	tracer, _ := newTracer(t, received.Address, 1)
	_, client := serve(t, tracer)
	for _, parents := range [][]string{{""}, {"00-"}, {clientParent, clientParent}, {clientParent + clientParent + clientParent}} {
		ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{"traceparent": parents})
		_, _ = client.Check(ctx, nil)
	}
	ctx, root := tracer.Begin(t.Context(), tracing.Origin{})
	_, _ = client.Check(ctx, nil)
	root.End(nil)
	for _, s := range received.Wait(t, func(s []collector.Span) bool { return len(s) >= 4 }) {
		if s.Trace == clientTrace || s.Trace != tracing.TraceID(ctx) {
			t.Errorf("%+v is not of the last request", s)
		}
	}
}
