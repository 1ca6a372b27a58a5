package rpcserver

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services/kit/run/peertls"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
	"github.com/portico-platform/portico/services/vocabulary"
)

// counted is a port that counts what it receives.
type counted struct {
	net.Listener
	received atomic.Int64
	proved   atomic.Int64 // connections whose clients have proved who they are
	metrics  *prometheus.Registry
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, &l.received, &l.proved}, err
}

type countedConn struct {
	net.Conn
	received, proved *atomic.Int64
}

// Proved implements accept.Prover.
func (c countedConn) Proved() { c.proved.Add(1) }

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// store accepts every write.
type store struct{ pb.UnimplementedStoreServer }

func (store) Create(context.Context, *pb.CreateRequest) (*pb.Object, error) { return &pb.Object{}, nil }

// served starts a server of a store.
func served(t *testing.T, a *peertls.Authority) *counted {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &counted{Listener: inner, metrics: prometheus.NewRegistry()}
	s := New(Config{Identity: identity(t, a, "store"), Vocabulary: vocabulary.Platform(), Metrics: l.metrics, Log: slog.New(slog.DiscardHandler),
		Continued: func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(ctx, r)
		}})
	pb.RegisterStoreServer(s, store{})
	healthpb.RegisterHealthServer(s, health.NewServer())
	t.Cleanup(s.Stop)
	go func() { _ = s.Serve(l) }()
	return l
}

func newAuthority(t *testing.T) *peertls.Authority {
	t.Helper()
	a, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func identity(t *testing.T, a *peertls.Authority, name string) *peertls.Identity {
	t.Helper()
	files, err := a.Issue(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	i, err := peertls.Load(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func connected(t *testing.T, a *peertls.Authority, name string, l net.Listener) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(identity(t, a, name).Client("store")),
		grpc.WithStaticStreamWindowSize(1<<20), grpc.WithStaticConnWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestRefusedCallsAreNotRead: of a call that its caller may not make, the server reads no more than
// the window of a stream, and keeps nothing.
func TestRefusedCallsAreNotRead(t *testing.T) {
	a := newAuthority(t)
	l := served(t, a)
	stolen := connected(t, a, "authn", l)
	request := &pb.CreateRequest{Content: &pb.Content{Json: make([]byte, MaxRequest-1<<10)}}
	const calls = 4
	for range calls {
		if _, err := pb.NewStoreClient(stolen).Create(t.Context(), request); status.Code(err) != codes.PermissionDenied {
			t.Fatal(err)
		}
	}
	if got := l.received.Load(); got > calls*2<<20 {
		t.Errorf("%d bytes of %d were read", got, calls*MaxRequest)
	}
	if _, err := pb.NewStoreClient(connected(t, a, "frontdoor", l)).Create(t.Context(), request); err != nil {
		t.Errorf("the front door: %v", err)
	}
	request.Content.Json = make([]byte, MaxRequest+1)
	if _, err := pb.NewStoreClient(connected(t, a, "frontdoor", l)).Create(t.Context(), request); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request that is too large: %v", err)
	}
}

// TestRefusedCallsAreCounted: for the alert about them. A method that a peer invents is no label, and
// gets the answer by which a service of a later release learns that this one does not have it.
func TestRefusedCallsAreCounted(t *testing.T) {
	a := newAuthority(t)
	l := served(t, a)
	stolen := connected(t, a, "authn", l)
	for range 3 {
		if _, err := pb.NewStoreClient(stolen).Delete(t.Context(), &pb.DeleteRequest{}); status.Code(err) != codes.PermissionDenied {
			t.Fatal(err)
		}
	}
	for _, method := range []string{"/portico.v1.Store/Invented", "/portico.v1.Authz/Invented", "/invented.Store/Get", "/portico/v1/Store/Delete", "/x"} {
		if err := stolen.Invoke(t.Context(), method, &pb.GetRequest{}, &pb.Object{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
	}
	families, err := l.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if text := m.String(); !strings.Contains(text, `"/portico.v1.Store/Delete"`) || !strings.Contains(text, "PermissionDenied") || m.GetHistogram().GetSampleCount() != 3 {
				t.Errorf("got %s", text)
			}
		}
	}
	if len(families) != 1 || len(families[0].GetMetric()) != 1 {
		t.Errorf("got %v", families)
	}
}

// TestRefusedCallsAreForgotten: nothing remains of a refused call, whatever deadline its caller has
// chosen. Its timer, context and what stops it would be several objects.
func TestRefusedCallsAreForgotten(t *testing.T) {
	a := newAuthority(t)
	stolen := pb.NewStoreClient(connected(t, a, "authn", served(t, a)))
	ctx, cancel := context.WithTimeout(t.Context(), 10_000*time.Hour)
	defer cancel()
	refused := func(calls int) {
		for range calls {
			if _, err := stolen.Delete(ctx, &pb.DeleteRequest{}); status.Code(err) != codes.PermissionDenied {
				t.Fatal(err)
			}
		}
	}
	objects := func() int64 {
		var m runtime.MemStats
		for range 3 { // also what is in pools
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapObjects)
	}
	refused(100) // what is made once
	before := objects()
	const calls = 5000
	refused(calls)
	if more := objects() - before; more > calls/2 {
		t.Errorf("%d objects remain of %d calls", more, calls)
	}
}

// TestHealthForEveryService: every service may ask for the health, and nobody may wait for changes
// of it, which takes a stream for as long as the caller likes.
func TestHealthForEveryService(t *testing.T) {
	a := newAuthority(t)
	client := healthpb.NewHealthClient(connected(t, a, "admission", served(t, a)))
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a watch: %v", err)
	}
}

// TestStrangersProveNothing: the port learns which connections have proved who they are.
func TestStrangersProveNothing(t *testing.T) {
	a := newAuthority(t)
	l := served(t, a)
	for who, config := range map[string]*tls.Config{
		"without a certificate": {InsecureSkipVerify: true, NextProtos: []string{"h2"}}, //nolint:gosec // the test is about the other side
		"of another authority":  identity(t, newAuthority(t), "frontdoor").ClientConfig("store", "h2"),
	} {
		config.InsecureSkipVerify, config.VerifyConnection = true, nil
		conn, err := tls.Dial("tcp", l.Addr().String(), config)
		if err == nil { // the server reads the certificate after the client is done
			_, err = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
		if err == nil || l.proved.Load() != 0 {
			t.Errorf("%s: %v, %d connections", who, err, l.proved.Load())
		}
	}
	if _, err := healthpb.NewHealthClient(connected(t, a, "admission", l)).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	if got := l.proved.Load(); got != 1 {
		t.Errorf("%d connections have proved who they are", got)
	}
}

// TestAnnouncedLimits: the server announces how many calls a connection may have, and how large
// their headers may be.
func TestAnnouncedLimits(t *testing.T) {
	a := newAuthority(t)
	l := served(t, a)
	conn, err := tls.Dial("tcp", l.Addr().String(), identity(t, a, "authn").ClientConfig("store", "h2"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	frame, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("got %v", frame)
	}
	for id, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: maxCalls, http2.SettingMaxHeaderListSize: maxHeaders} {
		if got, _ := settings.Value(id); got != want {
			t.Errorf("%v: got %d, want %d", id, got, want)
		}
	}
}
