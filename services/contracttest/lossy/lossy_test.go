package lossy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/contracttest/lossy"
)

// echo starts a server that echoes its input.
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
	return lossy.New(t, echo(t))
}

// patience bounds every wait for what has to arrive.
const patience = time.Minute

// ask sends a text and returns the response, which is at most as long. It waits for the bytes that
// have to arrive, or for the end of the connection, and 300 ms for others.
func ask(t *testing.T, conn net.Conn, text string, certain int) string {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, text)
	buffer := make([]byte, len(text))
	n, _ := io.ReadFull(conn, buffer[:certain])
	if n == certain && n < len(text) {
		_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
		more, _ := io.ReadFull(conn, buffer[n:])
		n += more
	}
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
	if got := ask(t, conn, "hello", 5); got != "hello" {
		t.Fatalf("got %q through a proxy that loses nothing", got)
	}
	p.LoseAnswers(2)
	if got := ask(t, conn, "hello", 2); got != "he" {
		t.Errorf("got %q, want the first two bytes of the answer", got)
	}
	p.Heal()
	if got := ask(t, dial(t, p), "again", 5); got != "again" {
		t.Errorf("got %q after healing", got)
	}
}

func TestBlackHoleDeliversLater(t *testing.T) {
	p := start(t)
	conn := dial(t, p)
	p.BlackHole()
	if got := ask(t, conn, "late", 0); got != "" {
		t.Errorf("got %q out of a black hole", got)
	}
	p.Heal()
	_ = conn.SetDeadline(time.Now().Add(patience))
	buffer := make([]byte, 4)
	if _, err := io.ReadFull(conn, buffer); err != nil || string(buffer) != "late" {
		t.Errorf("got %q, %v; want what was held back", buffer, err)
	}
}

func TestCutClosesAndRefuses(t *testing.T) {
	p := start(t)
	conn := dial(t, p)
	ask(t, conn, "x", 1)
	p.Cut()
	if got := ask(t, conn, "hello", 5); got != "" {
		t.Errorf("got %q over a closed connection", got)
	}
	if got := ask(t, dial(t, p), "hello", 5); got != "" {
		t.Errorf("got %q over a refused connection", got)
	}
}

func TestCutEndsWithHeal(t *testing.T) {
	p := start(t)
	p.Cut()
	p.Heal()
	if got := ask(t, dial(t, p), "again", 5); got != "again" {
		t.Errorf("got %q after healing", got)
	}
}

// recorder starts a server that responds "ok" to each piece and sends the pieces to a
// channel.
func recorder(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	pieces := make(chan string, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 1024)
				for {
					n, err := conn.Read(buffer)
					if n > 0 {
						pieces <- string(buffer[:n])
						_, _ = io.WriteString(conn, "ok")
					}
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), pieces
}

// TestFaultsOfOneConnection loses one request with each kind of fault: the client never
// gets a response, and the server gets the request at once, never, or on Deliver.
func TestFaultsOfOneConnection(t *testing.T) {
	for kind, arrives := range map[lossy.Kind]string{lossy.Answer: "at once", lossy.Request: "never", lossy.Late: "late"} {
		t.Run(arrives, func(t *testing.T) {
			address, got := recorder(t)
			p := lossy.New(t, address)
			conn := dial(t, p)
			p.Lose(lossy.Fault{Match: "b", After: 1, Kind: kind, Hold: 100 * time.Millisecond})
			for _, harmless := range []string{"a1", "b1"} {
				if answer := ask(t, conn, harmless, 2); answer != "ok" || <-got != harmless {
					t.Fatalf("got %q before the fault", answer)
				}
			}
			if conn = dial(t, p); !p.Armed() || p.Lost() != 0 {
				t.Fatal("the fault has happened too early")
			}
			if answer := ask(t, conn, "b2", 2); answer != "" || p.Armed() || p.Lost() != 1 {
				t.Fatalf("got %q, %d faults have happened", answer, p.Lost())
			}
			if arrives == "late" && len(got) == 0 {
				if err := p.Deliver(); err != nil {
					t.Fatal(err)
				}
			} else if arrives == "late" {
				t.Fatal("the request has arrived before it was delivered")
			}
			if arrives != "never" {
				if piece := <-got; piece != "b2" {
					t.Errorf("the server got %q", piece)
				}
			}
			if answer := ask(t, dial(t, p), "c!", 2); answer != "ok" || <-got != "c!" {
				t.Errorf("got %q on another connection", answer)
			}
		})
	}
}
