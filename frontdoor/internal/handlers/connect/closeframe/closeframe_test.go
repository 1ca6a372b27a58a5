package closeframe_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/closeframe"
)

const (
	response = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"
	closing  = "\x88\x06\x03\xe9stop"
	goAway   = "\x80\x03\x00\x07\x00\x00\x00\x08\x7f\xff\xff\xff\x00\x00\x00\x00"
)

// end writes to a wrapped connection in parts of some bytes and closes it, and returns
// everything that the client gets.
func end(t *testing.T, protocol, reason, written string, part int) string {
	t.Helper()
	client, server := net.Pipe()
	got := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(client)
		got <- string(all)
	}()
	c := closeframe.Wrap(server, protocol, func() string { return reason })
	for rest := []byte(written); len(rest) > 0; {
		n := min(part, len(rest))
		if _, err := c.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	_ = c.Close()
	_ = c.Close()
	return <-got
}

// TestClose: a connection that ends between two frames gets the last one, whatever the
// writes were; one that ends within a frame or for no reason does not.
func TestClose(t *testing.T) {
	large := strings.Repeat("x", 70_000)
	for name, x := range map[string]struct{ protocol, reason, written, last string }{
		"nothing but the response": {"websocket", "stop", response, closing},
		"a frame":                  {"WebSocket", "stop", response + "\x82\x02ab", closing},
		"an empty frame":           {"websocket", "stop", response + "\x82\x00", closing},
		"frames of all lengths":    {"websocket", "stop", response + "\x82\x7e\x01\x00" + large[:256] + "\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70" + large + "\x82\x01a", closing},
		"a masked frame":           {"websocket", "stop", response + "\x82\x81mask" + "a", closing},
		"within a header":          {"websocket", "stop", response + "\x82", ""},
		"within a length":          {"websocket", "stop", response + "\x82\x7e\x01", ""},
		"within a frame":           {"websocket", "stop", response + "\x82\x03ab", ""},
		"an endless frame":         {"websocket", "stop", response + "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff" + large, ""},
		"a mask that overflows":    {"websocket", "stop", response + "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffabc", ""},
		"within the response":      {"websocket", "stop", response[:20], ""},
		"no reason":                {"websocket", "", response + "\x82\x02ab", ""},
		"SPDY":                     {"SPDY/3.1", "stop", response + "\x00\x00\x00\x01\x00\x00\x00\x02ab", goAway},
		"within a frame of SPDY":   {"SPDY/3.1", "stop", response + "\x00\x00\x00\x01\x00\x01\x00\x02ab", ""},
		"another protocol":         {"tls/1.2", "stop", response, ""},
		"a long reason":            {"websocket", strings.Repeat("r", 200), response, "\x88\x7d\x03\xe9" + strings.Repeat("r", 123)},
	} {
		for _, part := range []int{1, 3, 4096, 1 << 20} {
			if got := end(t, x.protocol, x.reason, x.written, part); got != x.written+x.last {
				t.Errorf("%s, %d bytes at a time: the client got %d bytes, want %d and %q", name, part, len(got), len(x.written), x.last)
			}
		}
	}
}

// TestCloseWhileTheClientStalls: a client that reads nothing delays the end for a second.
func TestCloseWhileTheClientStalls(t *testing.T) {
	_, server := net.Pipe()
	c := closeframe.Wrap(server, "websocket", func() string { return "stop" })
	writing := make(chan struct{})
	go func() {
		_, _ = c.Write(bytes.Repeat([]byte("x"), 1<<20))
		close(writing)
	}()
	began := time.Now()
	_ = c.Close()
	<-writing
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// FuzzFrames: what a node, pod or service writes reaches the client, and the end of the connection does
// not depend on how that was divided.
func FuzzFrames(f *testing.F) {
	f.Add("\x82\x02ab\x82\x81mask"+"a", true, 3)
	f.Add("\x82\x7e\x01\x00xx", true, 1)
	f.Add("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffabc", true, 1) // whose length and mask overflow
	f.Add("\x00\x00\x00\x01\x00\x00\x00\x02ab", false, 5)
	f.Fuzz(func(t *testing.T, frames string, webSocket bool, part int) {
		protocol, last := "spdy/3.1", goAway
		if webSocket {
			protocol, last = "websocket", closing
		}
		whole, divided := end(t, protocol, "stop", response+frames, 1<<20), end(t, protocol, "stop", response+frames, max(part, 1))
		if whole != divided || whole != response+frames && whole != response+frames+last {
			t.Errorf("%s %q: got %q at once, and %q in parts", protocol, frames, whole, divided)
		}
	})
}
