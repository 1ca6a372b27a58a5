package accept

import (
	"container/list"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Prover is a connection of a port for peers. Proved is called when its client has proved who it is.
type Prover interface{ Proved() }

// ListenForPeers opens a TCP port at which clients have to prove who they are. While all seats are
// taken, the oldest connection that has not done so ends when a new one comes: otherwise anybody
// could keep peers out, with a few connections that send nothing. A connection ends when its client
// has not acknowledged something for the time unacknowledged; not all operating systems do that.
func ListenForPeers(address string, seats Seats, unacknowledged time.Duration, log *slog.Logger) (net.Listener, error) {
	l, err := listen(address, seats, log)
	if err != nil {
		return nil, err
	}
	l.peers = &peers{unacknowledged: unacknowledged}
	return l, nil
}

// peers are the connections of a port for peers.
type peers struct {
	unacknowledged time.Duration

	mu       sync.Mutex
	unproved list.List // of *peerConn that have not proved who they are, oldest first
}

// welcome adds a connection.
func (p *peers) welcome(c *conn) *peerConn {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = setUserTimeout(tcp, p.unacknowledged) // keepalive remains
	}
	made := &peerConn{conn: c, of: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	made.entry = p.unproved.PushBack(made)
	return made
}

// endOldest ends the oldest connection that has not proved who it is, false if there is none. p may
// be nil.
func (p *peers) endOldest() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	oldest := p.unproved.Front()
	if oldest != nil {
		p.unproved.Remove(oldest)
	}
	p.mu.Unlock()
	if oldest == nil {
		return false
	}
	_ = oldest.Value.(*peerConn).Close() // its server learns of it when it reads
	return true
}

// peerConn is a connection of a port for peers.
type peerConn struct {
	*conn
	of    *peers
	entry *list.Element
}

// Proved implements Prover.
func (c *peerConn) Proved() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.unproved.Remove(c.entry) // nothing, if it has been removed
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	c.Proved() // it is not to be ended any more
	return c.conn.Close()
}

var _ Prover = (*peerConn)(nil)
