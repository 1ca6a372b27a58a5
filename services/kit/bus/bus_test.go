package bus_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

const testTimeout = 10 * time.Second

// serve starts a NATS server. Port -1 is any.
func serve(t *testing.T, port int, tls *peertls.Files) *server.Server {
	t.Helper()
	options := &server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true}
	if tls != nil {
		config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: tls.Cert, KeyFile: tls.Key, CaFile: tls.CA, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		options.TLSConfig, options.TLS, options.TLSVerify = config, true, true
	}
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testTimeout) {
		t.Fatal("the NATS server does not start")
	}
	return s
}

// use starts a process with a connection to NATS.
func use(t *testing.T, args ...string) (conn *nats.Conn, health *run.Health, err error) {
	t.Helper()
	user := run.Service{Name: "user", Needs: []run.Dependency{bus.Conn}, Start: func(ctx context.Context, n *run.Node) (err error) {
		health = n.Health
		conn, err = bus.Conn.Use(ctx, n)
		return err
	}}
	running, err := run.Start(t.Context(), run.App{Name: "test", Services: []run.Service{user}}, append(args, "--log-level=error"))
	if err == nil {
		t.Cleanup(running.Stop)
	}
	return conn, health, err
}

// wantDelivery checks that a published message is received.
func wantDelivery(t *testing.T, conn *nats.Conn) {
	t.Helper()
	s, err := conn.SubscribeSync("test.>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Unsubscribe() }()
	if err := conn.Publish("test.word", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if m, err := s.NextMsg(testTimeout); err != nil || string(m.Data) != "hello" {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestConnects(t *testing.T) {
	conn, health, err := use(t, "--nats-url="+serve(t, -1, nil).ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	wantDelivery(t, conn)
	if err := probe(t, health); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

func TestConnectsWithMutualTLS(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	serverFiles, err := authority.Issue(t.TempDir(), "nats", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	clientFiles, err := authority.Issue(t.TempDir(), "watch-hub")
	if err != nil {
		t.Fatal(err)
	}
	first := serve(t, -1, &serverFiles)
	url := "--nats-url=" + first.ClientURL()
	conn, _, err := use(t, url, "--nats-ca-file="+clientFiles.CA, "--nats-cert-file="+clientFiles.Cert, "--nats-key-file="+clientFiles.Key)
	if err != nil {
		t.Fatal(err)
	}
	wantDelivery(t, conn)
	// A key without its certificate, as while they are replaced: it connects with what it has.
	other, err := os.ReadFile(serverFiles.Key)
	if err == nil {
		err = os.WriteFile(clientFiles.Key, other, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	port, found := end(t, first, conn)
	serve(t, port, &serverFiles)
	await(t, found)
	wantDelivery(t, conn)
}

// end ends a server and waits until its client has noticed. It returns the server's port, and a channel
// that receives when the client is connected again.
func end(t *testing.T, s *server.Server, conn *nats.Conn) (port int, found <-chan nats.Status) {
	t.Helper()
	port = s.Addr().(*net.TCPAddr).Port
	lost, found := conn.StatusChanged(nats.RECONNECTING), conn.StatusChanged(nats.CONNECTED)
	s.Shutdown()
	s.WaitForShutdown()
	await(t, lost)
	return port, found
}

// TestConnectsWheneverTheServerComes: the order of starting does not matter, and a lost
// connection is restored.
func TestConnectsWheneverTheServerComes(t *testing.T) {
	first := serve(t, -1, nil)
	url := first.ClientURL()
	conn, health, err := use(t, "--nats-url="+url)
	if err != nil {
		t.Fatal(err)
	}
	port, found := end(t, first, conn)
	if probe(t, health) == nil {
		t.Error("ready without a connection")
	}
	late, lateHealth, err := use(t, "--nats-url="+url)
	if err != nil {
		t.Fatalf("starting without a server: %v", err)
	}
	if probe(t, lateHealth) == nil {
		t.Error("ready before the first connection")
	}
	lateFound := late.StatusChanged(nats.CONNECTED)
	serve(t, port, nil)
	await(t, found)
	await(t, lateFound)
	wantDelivery(t, conn)
	wantDelivery(t, late)
}

func TestWrongFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"--nats-url is required":                           nil,
		"--nats-cert-file and --nats-key-file":             {"--nats-url=nats://x:1", "--nats-cert-file=x"},
		"--nats-ca-file: stat /none":                       {"--nats-url=nats://x:1", "--nats-ca-file=/none"},
		"--nats-cert-file and --nats-key-file: stat /none": {"--nats-url=nats://x:1", "--nats-cert-file=/none", "--nats-key-file=/none"},
		"--nats-credentials-file: stat /none":              {"--nats-url=nats://x:1", "--nats-credentials-file=/none"},
		"--nats-url: parse":                                {"--nats-url=nats://x:y"},
		"--nats-nkey-seed-file: stat /none":                {"--nats-url=nats://127.0.0.1:1", "--nats-nkey-seed-file=/none"},
		"cannot be used together":                          {"--nats-url=nats://127.0.0.1:1", "--nats-nkey-seed-file=x", "--nats-credentials-file=x"},
		"nats://203.0.113.5:4222 is on another machine":    {"--nats-url=nats://203.0.113.5:4222"},
		"use tls://nats.example:4222":                      {"--nats-url=nats://nats.example:4222"},
		"nats://other:4222 is on another machine":          {"--nats-url=other:4222"},
		"nats://mixed:4222 is on another machine":          {"--nats-url=tls://a:4222, nats://127.0.0.1:4222,nats://mixed:4222"},
		"ws://socket:4222 is on another machine":           {"--nats-url=ws://socket:4222"},
		"nats://user:xxxxx@secret:4222 is on another":      {"--nats-url=nats://user:password@secret:4222"},
	} {
		if _, _, err := use(t, args...); !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want one about %s", args, err, want)
		}
	}
}

// TestAcceptedURLs: URLs are accepted if the connection is encrypted or local.
func TestAcceptedURLs(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), "user")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--nats-url=nats://localhost:1,nats://[::1]:1,127.0.0.1:1"},
		{"--nats-url=tls://127.0.0.1:1"},
		{"--nats-url=nats://localhost.example.invalid:1", "--nats-ca-file=" + files.CA},
	} {
		if _, _, err := use(t, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func probe(t *testing.T, h *run.Health) error {
	t.Helper()
	for _, c := range h.Checks() {
		if c.Name == "nats" {
			return c.Probe(t.Context())
		}
	}
	t.Fatal("there is no check of the connection")
	return nil
}

func await(t *testing.T, changed <-chan nats.Status) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(testTimeout):
		t.Fatal("the status did not change")
	}
}

// TestServerThatDoesNotRead: writes to a server that does not read end, and the connection is given up
// long before it misses pings.
func TestServerThatDoesNotRead(t *testing.T) {
	server := serve(t, -1, nil)
	link := lossy.New(t, server.Addr().String())
	conn, _, err := use(t, "--nats-url=nats://"+link.Address())
	if err != nil {
		t.Fatal(err)
	}
	wantDelivery(t, conn)
	lost := conn.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED)
	link.BlackHole()
	published := make(chan struct{})
	go func() {
		defer close(published)
		for range 64 { // more than the buffers of sockets and client
			_ = conn.Publish("test.large", make([]byte, 512<<10)) // fails when the buffer is full
		}
	}()
	select {
	case <-lost:
	case <-time.After(19 * time.Second): // two pings are missed after 20
		t.Error("the connection is kept")
	}
	<-published
	link.Heal()
	for !conn.IsConnected() {
		<-time.After(10 * time.Millisecond)
	}
	wantDelivery(t, conn)
}
