// Package accept opens ports whose connections do not use up the file descriptors of the process,
// and logs when they cannot be accepted. It does not know what is served.
package accept

import (
	"log/slog"
	"math"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

const (
	// logInterval is the least pause between two lines of a log about the same port.
	logInterval = 10 * time.Second
	// fewest is how many descriptors the process keeps for itself at least, unless that is more
	// than half of them.
	fewest = 32
)

// Seats bounds the connections that are open at the same time, of any number of ports.
type Seats chan struct{}

// NewSeats returns seats for n connections.
func NewSeats(n int) Seats { return make(Seats, n) }

// Clients returns the seats for the clients of this process, which all its ports share: three
// quarters of the descriptors that it may open. The others are for its files and for its own
// connections to other services.
var Clients = sync.OnceValue(func() Seats {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return NewSeats(math.MaxInt32)
	}
	return NewSeats(forClients(limit.Cur))
})

// forClients returns how many of the descriptors are for clients.
func forClients(descriptors uint64) int {
	own := max(descriptors/4, min(fewest, descriptors/2))
	return int(min(descriptors-own, math.MaxInt32))
}

// Listen opens a TCP port. While all seats are taken, further clients wait in the queue of the
// operating system.
func Listen(address string, seats Seats, log *slog.Logger) (net.Listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: inner, seats: seats, log: log, closed: make(chan struct{}),
		full: rate.Sometimes{Interval: logInterval}, failing: rate.Sometimes{Interval: logInterval}}, nil
}

type listener struct {
	net.Listener
	seats         Seats
	log           *slog.Logger
	once          sync.Once
	closed        chan struct{}
	full, failing rate.Sometimes // for the log
}

// Accept implements net.Listener. A server repeats it after a temporary error.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.seats <- struct{}{}:
	default:
		l.full.Do(func() {
			l.log.Warn("new connections wait: as many are open as the limit on open files allows", "address", l.Addr().String(), "open", len(l.seats))
		})
		select {
		case l.seats <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	c, err := l.Listener.Accept()
	if err == nil {
		return &conn{Conn: c, seats: l.seats}, nil
	}
	<-l.seats
	select {
	case <-l.closed:
	default:
		l.failing.Do(func() {
			l.log.Warn("a connection cannot be accepted, retrying", "address", l.Addr().String(), "error", err)
		})
	}
	return nil, err
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn is a connection that leaves its seat when it is closed.
type conn struct {
	net.Conn
	seats Seats
	once  sync.Once
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.seats })
	return err
}
