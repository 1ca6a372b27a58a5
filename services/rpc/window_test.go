package rpc_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/portico-platform/portico/services/rpc/window"
)

// recorded is a connection that keeps what passes it in each direction.
type recorded struct {
	net.Conn
	mu            sync.Mutex
	read, written bytes.Buffer
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read.Write(p[:n])
	return n, err
}

func (r *recorded) Write(p []byte) (int, error) {
	r.mu.Lock()
	r.written.Write(p)
	r.mu.Unlock()
	return r.Conn.Write(p)
}

// pings counts the frames of the type PING in both directions.
func (r *recorded) pings() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const preface, header, ping = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 9, 6
	for _, frames := range [][]byte{r.read.Bytes(), r.written.Bytes()[preface:]} {
		for len(frames) >= header {
			if frames[3] == ping {
				n++
			}
			length := int(frames[0])<<16 | int(frames[1])<<8 | int(frames[2])
			frames = frames[min(header+length, len(frames)):]
		}
	}
	return n
}

// pingsOf makes calls one after the other, and returns how many pings there were.
func pingsOf(t *testing.T, client []grpc.DialOption, server []grpc.ServerOption) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(server...)
	healthpb.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(listener) }() // until it is stopped
	defer s.Stop()
	var over *recorded
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), append(client,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			over = &recorded{Conn: c}
			return over, err
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 20 {
		if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	return over.pings()
}

// TestCallsWithoutPings: with the windows of the suite a message causes no pings, as it does
// without them.
func TestCallsWithoutPings(t *testing.T) {
	if n := pingsOf(t, window.Client(), window.Server()); n != 0 {
		t.Errorf("%d pings in 20 calls", n)
	}
	if pingsOf(t, nil, nil) == 0 {
		t.Error("no pings without the windows either: they are not needed")
	}
}
