package accept

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// output is a log that tests read.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // gets a value for each line, if there is room
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.written <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) count(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Count(o.text.String(), what)
}

// mostLines returns how many lines about one port may be in the log since a time.
func mostLines(since time.Time) int { return 1 + int(time.Since(since)/logInterval) }

// counting is a port that counts the connections that are open at the same time, with those of other
// ports.
type counting struct {
	net.Listener
	*open
}

type open struct {
	mu        sync.Mutex
	now, most int
}

func (o *open) add(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now += n
	o.most = max(o.most, o.now)
}

func (c counting) Accept() (net.Conn, error) {
	inner, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.add(1)
	return &counted{Conn: inner, open: c.open}, nil
}

type counted struct {
	net.Conn
	*open
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.add(-1) })
	return c.Conn.Close()
}

// accepted returns the connections that a port accepts, until it is closed.
func accepted(l net.Listener) <-chan net.Conn {
	all := make(chan net.Conn, 100) // the port decides how many, not who takes them
	go func() {
		defer close(all)
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				all <- c
			}
		}
	}()
	return all
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestSeats: two ports share seats; clients beyond them wait, and are served once others leave.
func TestSeats(t *testing.T) {
	began, all, log := time.Now(), &open{}, output{written: make(chan struct{}, 1)}
	seats := NewSeats(3)
	var ports [2]net.Listener
	var served [2]<-chan net.Conn
	for i := range ports {
		l, err := Listen("127.0.0.1:0", seats, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		ports[i], served[i] = l, accepted(counting{l, all})
	}
	var seated []net.Conn
	for range cap(seats) {
		dial(t, ports[0])
		seated = append(seated, <-served[0])
	}
	for range 20 {
		dial(t, ports[0])
	}
	select {
	case <-log.written:
	case <-time.After(time.Minute):
		t.Fatal("no log")
	}
	select {
	case <-served[0]:
		t.Fatal("a connection without a seat")
	default:
	}
	for _, c := range seated {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_ = seated[0].Close() // again: it has one seat only
	for range 20 {
		c := <-served[0]
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dial(t, ports[1])
	if err := (<-served[1]).Close(); err != nil {
		t.Fatal(err)
	}
	if n, most := log.count("new connections wait"), 2*mostLines(began); n > most {
		t.Errorf("%d lines for two ports, want at most %d", n, most)
	}
	for i, l := range ports {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for range served[i] {
		}
	}
	if len(seats) != 0 {
		t.Errorf("%d seats are taken by nobody", len(seats))
	}
	if all.most > cap(seats) {
		t.Errorf("%d connections with %d seats", all.most, cap(seats))
	}
}

// failing is a port whose first connections cannot be accepted.
type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// TestErrorsAreLogged: an error is logged once per interval, keeps no seat, and the port goes on.
func TestErrorsAreLogged(t *testing.T) {
	began, log := time.Now(), output{}
	l, err := Listen("127.0.0.1:0", NewSeats(2), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.(*listener)
	port.Listener = &failing{port.Listener, 50}
	served := accepted(l)
	client := dial(t, l)
	server := <-served
	if n, most := log.count("too many open files"), mostLines(began); n < 1 || n > most {
		t.Errorf("%d lines, want one to %d", n, most)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestForClients: how many of the descriptors are for clients, and for a port with seats of its own.
func TestForClients(t *testing.T) {
	type seats struct{ clients, apart int }
	for descriptors, want := range map[uint64]seats{
		1: {1, 1}, 64: {32, 8}, 128: {96, 8}, 256: {192, 16}, 1024: {768, 64}, 1 << 20: {3 << 18, 1 << 16}, math.MaxUint64: {math.MaxInt32, math.MaxInt32},
	} {
		if got := (seats{forClients(descriptors), apart(descriptors)}); got != want {
			t.Errorf("%d descriptors: got %d, want %d", descriptors, got, want)
		}
	}
	few, mine := cap(NewSeats(3)), apart(descriptors())
	if few != min(3, mine) || cap(NewSeats(math.MaxInt)) != mine {
		t.Errorf("got %d of 3 seats, %d are for a port", few, mine)
	}
}
