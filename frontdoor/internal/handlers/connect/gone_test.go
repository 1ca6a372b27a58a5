package connect

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// stuff sends input that the command does not read, until no more fits between the client and the
// node: what reads from the client then waits, and does not notice its end.
func stuff(conn net.Conn) {
	_ = conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
	frame := append([]byte{0x82, 0xfe, 0x40, 0x00, 0, 0, 0, 0}, make([]byte, 16<<10)...) // masked with 0, for channel 0
	for {
		if _, err := conn.Write(frame); err != nil {
			return
		}
	}
}

// TestClientsThatAreGone: a command ends with its client, also if that client does not read what the
// command writes, whichever protocol it has: one that is translated for the node, or one that is
// passed through.
func TestClientsThatAreGone(t *testing.T) {
	const streams = 3 // for errors, input and output
	underway, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	flood := func(to io.Writer) {
		piece := bytes.Repeat([]byte{0x82, 0x02, 'a', 'b'}, 4<<10)
		for i := 0; ; i++ {
			if _, err := to.Write(piece); err != nil {
				ended <- struct{}{}
				return
			}
			if i == 64 {
				underway <- struct{}{}
			}
		}
	}
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != spdy.HeaderSpdy31 {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
			flood(conn)
			return
		}
		found := make(chan httpstream.Stream, streams)
		w.Header().Set("X-Stream-Protocol-Version", "v4.channel.k8s.io")
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error { found <- s; return nil })
		if conn == nil {
			return
		}
		defer conn.Close()
		for range streams {
			if s := <-found; s.Headers().Get("streamType") == "stdout" {
				flood(s)
			}
		}
	})
	for _, protocol := range []string{"v5.channel.k8s.io", "v4.channel.k8s.io"} {
		conn, _, status := b.open("pods/placed/exec?stdin=1&stdout=1&command=yes", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
			"Sec-WebSocket-Protocol: "+protocol, "Origin: http://front")
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("%s: %d", protocol, status)
		}
		<-underway
		stuff(conn)
		_ = conn.(*net.TCPConn).SetLinger(0) // as a client that is killed
		_ = conn.Close()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the command goes on without its client", protocol)
		}
		b.handlers.Close(t.Context())
		if n := b.handlers.Open(); n != 0 {
			t.Errorf("%s: %d connections are left", protocol, n)
		}
		b.handlers.open = sessions{}
	}
}
