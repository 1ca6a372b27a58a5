package contracttest

import (
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/portico-platform/portico/services"
)

// Remote returns a client of impl over gRPC on the loopback interface, which is closed at
// the end of the test.
func Remote[T any](t testing.TB, register func(grpc.ServiceRegistrar, T), client func(grpc.ClientConnInterface) T, impl T) T {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server, impl)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return client(conn)
}

// wantReason fails the test unless err is a Status with that reason.
func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	var s *services.Status
	if !errors.As(err, &s) {
		t.Fatalf("got error %v, want a Status with reason %s", err, reason)
	}
	if s.Reason != reason {
		t.Fatalf("got Status %d %s (%s), want reason %s", s.Code, s.Reason, s.Message, reason)
	}
}
