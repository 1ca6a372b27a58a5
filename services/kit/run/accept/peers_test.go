package accept

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// peerPort opens a port for peers with seats for two.
func peerPort(t *testing.T, log io.Writer) (net.Listener, <-chan net.Conn) {
	t.Helper()
	l, err := ListenForPeers("127.0.0.1:0", NewSeats(2), 1234*time.Millisecond, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	served := accepted(l)
	t.Cleanup(func() {
		_ = l.Close()
		for c := range served {
			_ = c.Close()
		}
	})
	return l, served
}

// next returns the next connection of a port, which must not wait.
func next(t *testing.T, served <-chan net.Conn) net.Conn {
	t.Helper()
	select {
	case c := <-served:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("the connection waits")
		return nil
	}
}

// closed waits until the other side has closed a connection.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// TestStrangersYield: clients that have not proved who they are end when others come, the oldest
// first, and those that have proved it stay.
func TestStrangersYield(t *testing.T) {
	log := output{written: make(chan struct{}, 1)}
	l, served := peerPort(t, &log)
	known := dial(t, l)
	peer := next(t, served)
	peer.(Prover).Proved()
	stranger := dial(t, l)
	next(t, served)
	for range 10 {
		another := dial(t, l)
		next(t, served)
		closed(t, stranger)
		stranger = another
	}
	second := dial(t, l)
	last := next(t, served)
	closed(t, stranger)
	last.(Prover).Proved()
	if n := log.count("end others that have not proved"); n != 1 {
		t.Errorf("%d lines", n)
	}
	// Both seats are of peers now: the next one waits until one leaves.
	third := dial(t, l)
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	closed(t, known)
	next(t, served)
	for who, c := range map[string]net.Conn{"the peer": second, "the one that has waited": third} {
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// TestStrangersThatLeave: a connection that was closed is not ended in the place of another one.
func TestStrangersThatLeave(t *testing.T) {
	l, served := peerPort(t, io.Discard)
	dial(t, l)
	if err := next(t, served).Close(); err != nil {
		t.Fatal(err)
	}
	of := l.(*listener).peers
	if of.endOldest() {
		t.Error("a connection that was closed has ended again")
	}
	dial(t, l)
	c := next(t, served)
	c.(Prover).Proved()
	if of.endOldest() {
		t.Error("a peer has ended")
	}
	_ = c.Close()
	if got := len(l.(*listener).seats); got != 0 {
		t.Errorf("%d seats are taken", got)
	}
}
