// Package lossy is a TCP proxy between two processes of a test. It makes the
// connections between them fail in a controlled way: one connection at the worst time
// for one request (Lose), or the whole link until it is healed (LoseAnswers,
// BlackHole, Delay, Cut). It never changes, reorders or duplicates bytes.
package lossy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections from a loopback address to a target.
type Proxy struct {
	listener   net.Listener
	target     string
	goroutines sync.WaitGroup
	closed     chan struct{}

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	cut     bool          // new connections are closed at once
	delay   time.Duration // before bytes are forwarded
	answers int64         // bytes that still pass from the target; negative: all
	flowing chan struct{} // closed while bytes may pass

	faults []*Fault
	lost   int
	late   []func() error
}

// New returns a proxy to an address, without faults. It is closed at the end of the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, closed: make(chan struct{}), conns: map[net.Conn]struct{}{},
		answers: -1, flowing: make(chan struct{})}
	close(p.flowing)
	p.goroutines.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			p.goroutines.Go(func() { p.join(near) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		close(p.closed)
		p.Cut()
		p.goroutines.Wait()
	})
	return p
}

// Address returns the host and port where clients reach the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// LoseAnswers lets a number of bytes from the target pass and discards all that
// follow, until Heal. What clients send still arrives.
func (p *Proxy) LoseAnswers(after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = after
}

// BlackHole holds back all bytes in both directions until Heal. Connections stay open.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default: // already
	}
}

// Delay delays all bytes in both directions, until Heal.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Cut closes all connections and refuses new ones until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.closeAll()
}

// Reset closes all connections. New ones are accepted.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

// Heal ends LoseAnswers, BlackHole, Delay and Cut; bytes that were held back are delivered.
// Connections that may have lost bytes are closed, because their streams are corrupt.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers >= 0 {
		p.closeAll()
	}
	p.cut, p.delay, p.answers = false, 0, -1
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

// wait waits until bytes may pass. It returns false when the proxy is closed.
func (p *Proxy) wait() bool {
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

// allowed returns how many of n bytes from the target are forwarded.
func (p *Proxy) allowed(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers < 0 {
		return n
	}
	passing := min(int64(n), p.answers)
	p.answers -= passing
	return int(passing)
}

// hold registers connections. It returns false while the proxy refuses them.
func (p *Proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if !p.cut {
			p.conns[conn] = struct{}{}
		}
	}
	return !p.cut
}

func (p *Proxy) release(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}
