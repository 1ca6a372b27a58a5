package etcd_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// server notes which spans its callers name.
type server struct {
	healthpb.UnimplementedHealthServer
	parents []string
}

func (s *server) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	s.parents = metadata.ValueFromIncomingContext(ctx, "traceparent")
	return &healthpb.HealthCheckResponse{}, nil
}

// TestEtcdIsToldOfTheTrace: etcd can continue the trace of a request, and is told nothing
// of one that is not sampled.
func TestEtcdIsToldOfTheTrace(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, impl := grpc.NewServer(), &server{}
	healthpb.RegisterHealthServer(s, impl)
	go func() { _ = s.Serve(listener) }() // until it is stopped
	defer s.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), append(etcd.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tracer, err := tracing.New(tracing.Config{Endpoint: collector.Start(t).Address, Sampling: 1,
		Process: tracing.Process{Name: "store", Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	sampled, root := tracer.Begin(t.Context(), tracing.Origin{})
	defer root.End(nil)
	for _, c := range []struct {
		ctx  context.Context
		want int
	}{{t.Context(), 0}, {sampled, 1}} {
		sending, ctx := etcd.Track(c.ctx)
		if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		if len(impl.parents) != c.want || sending.Never() {
			t.Errorf("etcd was told %q, want %d; never sent: %v", impl.parents, c.want, sending.Never())
		}
	}
}
