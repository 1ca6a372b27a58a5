// Package accept opens ports with a bounded number of connections, so that these do not use up the
// file descriptors of the process, and logs when connections cannot be accepted. At a port for
// peers, those that have not proved who they are yield to new ones. It does not know what is served.
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

// NewSeats returns seats for n connections that are not counted among those of clients. There are
// fewer if the process may open few descriptors: a quarter of those that it keeps for itself.
func NewSeats(n int) Seats { return make(Seats, min(n, apart(descriptors()))) }

// Clients returns the seats for the clients of this process, which all its ports share: three
// quarters of the descriptors that it may open, or fewer if these are less than 128. The others are
// for its files and for its own connections to other services.
var Clients = sync.OnceValue(func() Seats { return make(Seats, forClients(descriptors())) })

// descriptors returns how many descriptors the process may open.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

// forItself returns how many of the descriptors the process keeps for itself.
func forItself(descriptors uint64) uint64 { return max(descriptors/4, min(fewest, descriptors/2)) }

// forClients returns how many of the descriptors are for clients.
func forClients(descriptors uint64) int {
	return int(min(descriptors-forItself(descriptors), math.MaxInt32))
}

// apart returns how many of the descriptors a port with separate seats may use.
func apart(descriptors uint64) int {
	return int(min(max(1, forItself(descriptors)/4), math.MaxInt32))
}

// Listen opens a TCP port. While all seats are taken, further clients wait, all but one of them in
// the queue of the operating system.
func Listen(address string, seats Seats, log *slog.Logger) (net.Listener, error) {
	l, err := listen(address, seats, log)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func listen(address string, seats Seats, log *slog.Logger) (*listener, error) {
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
	peers         *peers // nil if connections do not have to prove who they are
	log           *slog.Logger
	once          sync.Once
	closed        chan struct{}
	full, failing rate.Sometimes // for the log
}

// Accept implements net.Listener. A server repeats it after a temporary error.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		select {
		case <-l.closed:
		default:
			l.failing.Do(func() {
				l.log.Warn("a connection cannot be accepted, retrying", "address", l.Addr().String(), "error", err)
			})
		}
		return nil, err
	}
	// Not before there is a connection, so that no other one ends for one that does not come.
	if err := l.takeSeat(); err != nil {
		_ = inner.Close()
		return nil, err
	}
	c := &conn{Conn: inner, seats: l.seats}
	if l.peers == nil {
		return c, nil
	}
	return l.peers.welcome(c), nil
}

// takeSeat waits for a seat. If none is free, a connection that has not proved who it is loses its
// own.
func (l *listener) takeSeat() error {
	for {
		select {
		case l.seats <- struct{}{}:
			return nil
		default:
		}
		if !l.peers.endOldest() {
			break
		}
		l.full.Do(func() { l.warn("new connections end others that have not proved who they are") })
	}
	l.full.Do(func() { l.warn("new connections wait") })
	select {
	case l.seats <- struct{}{}:
		return nil
	case <-l.closed:
		return net.ErrClosed
	}
}

// warn logs what happens because all seats are taken.
func (l *listener) warn(what string) {
	l.log.Warn(what+": the limit is reached", "address", l.Addr().String(), "open", len(l.seats))
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
