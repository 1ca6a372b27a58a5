package lossy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/portico-platform/portico/deploy/attack/lossy"
)

// echo starts a server that sends back what it gets and counts nothing.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	return l.Addr().String()
}

func start(t *testing.T) *lossy.Proxy {
	t.Helper()
	p, err := lossy.New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// ask sends a text and returns what comes back within a short time.
func ask(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	_, _ = io.WriteString(conn, text)
	buffer := make([]byte, len(text))
	n, _ := io.ReadFull(conn, buffer)
	return string(buffer[:n])
}

func dial(t *testing.T, p *lossy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestProxyCarriesAndLoses(t *testing.T) {
	p := start(t)
	conn := dial(t, p)
	if got := ask(t, conn, "hello"); got != "hello" {
		t.Fatalf("got %q through a proxy that loses nothing", got)
	}
	p.LoseAnswers(2)
	if got := ask(t, conn, "hello"); got != "he" {
		t.Errorf("got %q, want the first two bytes of the answer", got)
	}
	p.Heal()
	if got := ask(t, dial(t, p), "again"); got != "again" {
		t.Errorf("got %q after healing", got)
	}
}

func TestBlackHoleDeliversLater(t *testing.T) {
	p := start(t)
	conn := dial(t, p)
	p.BlackHole()
	if got := ask(t, conn, "late"); got != "" {
		t.Errorf("got %q out of a black hole", got)
	}
	p.Heal()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	buffer := make([]byte, 4)
	if _, err := io.ReadFull(conn, buffer); err != nil || string(buffer) != "late" {
		t.Errorf("got %q, %v; want what was held back", buffer, err)
	}
}

func TestCutClosesAndRefuses(t *testing.T) {
	p := start(t)
	conn := dial(t, p)
	ask(t, conn, "x")
	p.Cut()
	if got := ask(t, conn, "hello"); got != "" {
		t.Errorf("got %q over a closed connection", got)
	}
	if got := ask(t, dial(t, p), "hello"); got != "" {
		t.Errorf("got %q over a refused connection", got)
	}
}
