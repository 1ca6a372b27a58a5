// Package lossy is a TCP proxy that loses what it is told to lose: answers after a
// number of bytes, everything for a time, whole connections. It stands between two
// processes of a test and never looks into what it carries.
package lossy

import (
	"context"
	"net"
	"sync"
	"time"
)

// Proxy forwards connections from a loopback address to a target.
type Proxy struct {
	listener net.Listener
	target   string
	carriers sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	refusing bool          // new connections are closed at once
	delay    time.Duration // before each read is passed on
	answers  int64         // bytes from the target that still pass; negative: all
	flowing  chan struct{} // closed while bytes may pass
	closed   chan struct{}
}

// New starts a proxy to an address, which loses nothing.
func New(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{}, answers: -1,
		flowing: make(chan struct{}), closed: make(chan struct{})}
	close(p.flowing)
	p.carriers.Go(p.accept)
	return p, nil
}

// Address is where the proxy listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends the proxy and all connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	close(p.closed)
	p.Cut()
	p.carriers.Wait()
}

// LoseAnswers lets a number of bytes pass from the target and swallows all that
// follow; what is sent to the target still arrives.
func (p *Proxy) LoseAnswers(after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = after
}

// BlackHole holds back everything, in both directions, until Heal.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default: // already
	}
}

// Delay holds back everything that is read for a time.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Cut closes all connections. New ones are refused until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = true
	p.closeAll()
}

// Reset closes all connections and accepts new ones.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

// Heal lets everything pass again. Connections that have lost bytes are closed,
// because neither end could make sense of what would follow.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers >= 0 {
		p.closeAll()
	}
	p.refusing, p.delay, p.answers = false, 0, -1
	select {
	case <-p.flowing:
	default:
		close(p.flowing)
	}
}

func (p *Proxy) closeAll() {
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.carriers.Go(func() { p.join(near) })
	}
}

// join carries bytes between a connection and one of its own to the target.
func (p *Proxy) join(near net.Conn) {
	defer near.Close()
	if !p.hold(near) {
		return
	}
	defer p.release(near)
	dialer := net.Dialer{Timeout: 5 * time.Second}
	far, err := dialer.DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.hold(far) {
		return
	}
	defer p.release(far)
	var back sync.WaitGroup
	back.Go(func() { p.carry(near, far, true) })
	p.carry(far, near, false)
	back.Wait()
}

// carry copies until either end is closed, and then closes both.
func (p *Proxy) carry(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && p.pass() {
			if n = p.allowed(n, answers); n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until bytes may pass; it reports false when the proxy has been closed.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	flowing, delay := p.flowing, p.delay
	p.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.closed:
			return false
		}
	}
	select {
	case <-flowing:
		return true
	case <-p.closed:
		return false
	}
}

// allowed returns how many of n bytes go on.
func (p *Proxy) allowed(n int, answers bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !answers || p.answers < 0 {
		return n
	}
	passing := min(int64(n), p.answers)
	p.answers -= passing
	return int(passing)
}

func (p *Proxy) hold(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refusing {
		p.conns[conn] = struct{}{}
	}
	return !p.refusing
}

func (p *Proxy) release(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}
