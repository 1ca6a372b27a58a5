package frontdoor

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// TestStreamsPerConnection: a client with more concurrent requests than a connection may have
// needs another connection.
func TestStreamsPerConnection(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), "door")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag        string
		connections int32
	}{{"--http2-max-streams-per-connection=1", 3}, {"--http2-max-streams-per-connection=0", 1}} {
		door := &config{}
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		door.register(fs)
		if err := fs.Parse([]string{"--secure-port=0", "--tls-cert-file=" + files.Cert, "--tls-private-key-file=" + files.Key, c.flag}); err != nil {
			t.Fatal(err)
		}
		l, err := door.listener.Open(slog.New(slog.DiscardHandler), func(expiry.Source) {}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := connectionsOf(t, door, l); (got == 1) != (c.connections == 1) || got < c.connections {
			t.Errorf("%s: %d connections for 3 concurrent requests, want at least %d", c.flag, got, c.connections)
		}
	}
	for _, streams := range []int{-1, 1 << 40} {
		if err := (&config{maxStreams: streams}).check(&run.Node{}); err == nil {
			t.Errorf("--http2-max-streams-per-connection=%d is accepted", streams)
		}
	}
}

// connectionsOf returns how many connections a client opens for 3 concurrent requests.
func connectionsOf(t *testing.T, door *config, l net.Listener) int32 {
	t.Helper()
	var opened atomic.Int32
	var began, done sync.WaitGroup
	server := newServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			began.Done()
			began.Wait()
		}
	}), door.maxStreams, slog.New(slog.DiscardHandler))
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	done.Go(func() { _ = server.Serve(l) })
	defer done.Wait()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	get := func(path string) {
		response, err := client.Get("https://" + l.Addr().String() + path)
		if err != nil {
			t.Error(err)
			return
		}
		if response.ProtoMajor != 2 {
			t.Errorf("got %s", response.Proto)
		}
		_ = response.Body.Close()
	}
	get("/") // the client learns the limit
	began.Add(3)
	var requests sync.WaitGroup
	for range 3 {
		requests.Go(func() { get("/wait") })
	}
	requests.Wait()
	return opened.Load()
}
