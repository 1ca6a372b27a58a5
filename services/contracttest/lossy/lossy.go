// Package lossy is a TCP proxy for tests of what a client makes of a connection that
// breaks at the worst time: after the request has arrived and before the answer has,
// before the request has arrived, or with the request arriving much later. It never
// changes, reorders or duplicates bytes.
package lossy

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is what happens to one connection, once.
type Fault struct {
	// Match selects what the client sends: the fault begins with a piece of it that
	// holds Match. Empty matches every piece.
	Match string
	// Least is the smallest number of bytes of a piece that matches. It tells a request
	// from what the protocol exchanges by itself.
	Least int
	// After is the number of matching pieces that pass before.
	After int
	// Kind is what is lost.
	Kind Kind
	// Hold is how long the connection stays silent before it breaks. During that time
	// the server has the request and the client has no answer.
	Hold time.Duration
}

// Kind is what is lost.
type Kind int

const (
	Answer  Kind = iota // the server has the request, the client gets no answer
	Request             // the server never gets the request
	// Late breaks the client's connection, and the server gets the request when
	// Deliver is called.
	Late
)

// Proxy stands between clients and a server.
type Proxy struct {
	listener net.Listener
	target   string
	carriers sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	faults []*Fault
	lost   int
	late   []func() error
	closed bool // also: refuses connections
}

// New returns a proxy to a server's address. It ends with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	p.carriers.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			p.carriers.Go(func() { p.join(near) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.Refuse()
		p.carriers.Wait()
	})
	return p
}

// Address is where clients reach the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Lose arms a fault.
func (p *Proxy) Lose(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// Armed reports whether there are faults that have not happened yet.
func (p *Proxy) Armed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.faults) > 0
}

// Disarm forgets the faults that have not happened yet.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Lost returns how many faults have happened.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Deliver lets the server have the requests of all faults of the kind Late.
func (p *Proxy) Deliver() error {
	p.mu.Lock()
	late := p.late
	p.late = nil
	p.mu.Unlock()
	for _, deliver := range late {
		if err := deliver(); err != nil {
			return err
		}
	}
	return nil
}

// Refuse breaks all connections and refuses new ones until Accept.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Accept ends Refuse.
func (p *Proxy) Accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
}

// hit returns the fault that begins with what a client sends; nil for none.
func (p *Proxy) hit(sent []byte) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if len(sent) < f.Least || !bytes.Contains(sent, []byte(f.Match)) {
			continue
		}
		if f.After--; f.After < 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			p.lost++
			return f
		}
	}
	return nil
}

// pair is a connection of a client, and the one to the server that it is joined to.
type pair struct {
	near, far net.Conn
	mu        sync.Mutex
	muted     bool // nothing of the server's reaches the client any more
}

func (p *Proxy) join(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.hold(near, far) {
		return
	}
	defer p.release(near, far)
	c := &pair{near: near, far: far}
	var back sync.WaitGroup
	back.Go(func() { c.down() })
	p.up(c)
	back.Wait()
}

// up carries what the client sends.
func (p *Proxy) up(c *pair) {
	keep := false
	defer func() {
		_ = c.near.Close()
		if !keep {
			_ = c.far.Close()
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.near.Read(buffer)
		if n > 0 {
			f := p.hit(buffer[:n])
			if f != nil {
				c.mute()
				switch f.Kind {
				case Request:
					return
				case Late:
					keep = true
					p.keep(c.far, append([]byte(nil), buffer[:n]...))
					return
				}
				time.AfterFunc(f.Hold, func() {
					_ = c.near.Close()
					_ = c.far.Close()
				})
			}
			if _, err := c.far.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// keep holds a request back until Deliver.
func (p *Proxy) keep(far net.Conn, request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = append(p.late, func() error {
		_, err := far.Write(request)
		return err
	})
}

// down carries what the server sends, and ends with the server's connection.
func (c *pair) down() {
	defer c.near.Close()
	defer c.far.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.far.Read(buffer)
		if n > 0 && !c.pass(buffer[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// pass gives the client what the server has sent, unless the client is to get
// nothing; false when the client is gone.
func (c *pair) pass(sent []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.muted {
		return true
	}
	_, err := c.near.Write(sent)
	return err == nil
}

func (c *pair) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muted = true
}

// hold remembers connections; not when the proxy refuses them.
func (p *Proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if !p.closed {
			p.conns[conn] = struct{}{}
		}
	}
	return !p.closed
}

func (p *Proxy) release(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}
