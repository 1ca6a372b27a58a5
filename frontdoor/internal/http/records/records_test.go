package records

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// counted is a listener that counts the writes to its connections.
type counted struct {
	net.Listener
	writes *atomic.Int64
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.writes}, err
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// serve starts a server with HTTP/2 and returns its URL, a client, the number of writes to the
// client so far, and itself.
func serve(t testing.TB, h http.HandlerFunc) (url string, client *http.Client, writes *atomic.Int64, s *http.Server) {
	t.Helper()
	model := httptest.NewUnstartedServer(h)
	model.EnableHTTP2 = true
	model.StartTLS()
	certificates, client := model.TLS.Certificates, model.Client()
	model.Close()

	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	writes = new(atomic.Int64)
	s = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	if err := Configure(s); err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		_ = s.Serve(tls.NewListener(counted{plain, writes}, &tls.Config{Certificates: certificates, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}))
	})
	t.Cleanup(func() {
		client.CloseIdleConnections()
		_ = s.Close()
		served.Wait()
	})
	return "https://" + plain.Addr().String(), client, writes, s
}

// answer writes a whole response, which it announces as package pace does.
func answer(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	Of(r.Context()).Ending()
	_, _ = w.Write(body)
}

func get(t testing.TB, client *http.Client, url string) (body []byte, protocol string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body, response.Proto
}

// TestResponsesAreOneRecord: a short response is sent with one write to the network. Without Ending
// it takes more, which shows that the test would notice.
func TestResponsesAreOneRecord(t *testing.T) {
	for _, x := range []struct {
		size      int
		announced bool
	}{{10, true}, {6 << 10, true}, {Short, true}, {6 << 10, false}} {
		body := bytes.Repeat([]byte("x"), x.size)
		url, client, writes, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if x.announced {
				answer(w, r, body)
			} else {
				_, _ = w.Write(body)
			}
		})
		const requests = 20
		for range 3 {
			get(t, client, url) // with the frames that begin a connection
		}
		before := writes.Load()
		for range requests {
			got, protocol := get(t, client, url)
			if !bytes.Equal(got, body) || protocol != "HTTP/2.0" {
				t.Fatalf("%d bytes with %s", len(got), protocol)
			}
		}
		n := writes.Load() - before
		switch {
		case x.announced && n > requests+requests/4: // a few may exceed patience on a busy machine
			t.Errorf("%d writes for %d announced responses of %d bytes", n, requests, x.size)
		case !x.announced && n < 2*requests:
			t.Errorf("only %d writes for %d responses that were not announced", n, requests)
		}
	}
}

// BenchmarkResponse measures a request and a response of 6 KiB with the client, over loopback;
// cpu-ns is the CPU time of the process, for shared machines.
func BenchmarkResponse(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 6<<10)
	for name, announced := range map[string]bool{"announced": true, "plain": false} {
		b.Run(name, func(b *testing.B) {
			url, client, writes, _ := serve(b, func(w http.ResponseWriter, r *http.Request) {
				if announced {
					answer(w, r, body)
				} else {
					_, _ = w.Write(body)
				}
			})
			get(b, client, url)
			before, wrote := cpuTime(), writes.Load()
			for b.Loop() {
				get(b, client, url)
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(writes.Load()-wrote)/float64(b.N), "writes/op")
		})
	}
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestNothingIsHeldForLong: a response that was announced and does not end is sent all the same,
// and so are the events of another response on the connection.
func TestNothingIsHeldForLong(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	url, client, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		Of(r.Context()).Ending()
		for _, event := range []string{"first\n", "second\n"} {
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got := make([]byte, len("first\nsecond\n"))
	if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != "first\nsecond\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestConcurrentResponses: responses of all sizes on one connection, with bodies that use more
// than the window that a connection does not announce, arrive as they were written.
func TestConcurrentResponses(t *testing.T) {
	url, client, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if len(body) <= Short {
			answer(w, r, body)
			return
		}
		_, _ = w.Write(body)
	})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for size := 1; size < 3<<20; size *= 5 {
				body := strings.Repeat(string(rune('a'+i)), size)
				response, err := client.Post(url, "text/plain", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil || string(got) != body {
					t.Errorf("%d bytes of %d, %v", len(got), size, err)
				}
			}
		})
	}
	all.Wait()
}

// TestShutdown: a connection without a request ends when the server is shut down, and one with a
// request after its response.
func TestShutdown(t *testing.T) {
	arrived, end := make(chan struct{}), make(chan struct{})
	url, client, _, s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			<-end
		}
		answer(w, r, []byte("whole"))
	})
	get(t, client, url)
	slow := make(chan string, 1)
	go func() {
		body, _ := get(t, client, url+"/slow")
		slow <- string(body)
	}()
	<-arrived
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun := make(chan struct{})
	s.RegisterOnShutdown(func() { close(begun) })
	go func() { ended <- s.Shutdown(ctx) }()
	<-begun
	close(end)
	if body := <-slow; body != "whole" {
		t.Errorf("got %q", body)
	}
	if err := <-ended; err != nil {
		t.Errorf("shutting down: %v", err)
	}
	if response, err := client.Get(url); err == nil {
		_ = response.Body.Close()
		t.Error("a server that was shut down answers")
	}
}

// TestHTTP1: requests without HTTP/2 have no Conn, and Ending does nothing.
func TestHTTP1(t *testing.T) {
	url, client, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(w, r, []byte(r.Proto)) })
	transport := client.Transport.(*http.Transport).Clone()
	transport.TLSNextProto, transport.ForceAttemptHTTP2 = map[string]func(string, *tls.Conn) http.RoundTripper{}, false
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	defer transport.CloseIdleConnections()
	if body, protocol := get(t, &http.Client{Transport: transport}, url); string(body) != "HTTP/1.1" || protocol != "HTTP/1.1" {
		t.Errorf("%q with %s", body, protocol)
	}
}

// FuzzFrames reads frames in two pieces, cut anywhere, and in one.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x02\x00\x01\x00\x00\x00\x01ab\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x10\x00"), 5)
	f.Add([]byte("\x00\x00\x00\x01\x05\x00\x00\x00\x03\x00\x00\x04\x03\x00\x00\x00\x00\x03\x00\x00\x00\x08"), 12)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		if at < 0 || at > len(text) {
			return
		}
		var one, two frames
		one.read(text)
		two.read(text[:at])
		ended := two.ended
		two.read(text[at:])
		two.ended += ended
		one.others, two.others = false, false
		if one != two {
			t.Errorf("%+v in one piece, %+v in two", one, two)
		}
		if one.left < 0 || one.n < 0 || one.n >= headerLength {
			t.Errorf("%+v", one)
		}
	})
}
