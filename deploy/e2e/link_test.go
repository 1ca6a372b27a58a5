package e2e

import (
	"net"
	"sync"
	"testing"
)

// link is a way between two processes that a test can close.
type link struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	cut    bool
	thawed chan struct{} // closed while bytes may pass
}

func newLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, target: target, conns: map[net.Conn]struct{}{}, thawed: make(chan struct{})}
	close(l.thawed)
	var carriers sync.WaitGroup
	carriers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			carriers.Go(func() { l.join(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.heal()
		l.sever()
		carriers.Wait()
	})
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

// freeze holds everything back that is on its way: the ends hear nothing of each
// other and do not know why.
func (l *link) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.thawed = make(chan struct{})
}

// sever breaks the connections and refuses new ones.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for conn := range l.conns {
		_ = conn.Close()
	}
}

// heal lets everything pass again, also what was held back.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	select {
	case <-l.thawed:
	default:
		close(l.thawed)
	}
}

// pass waits until bytes may pass.
func (l *link) pass() {
	l.mu.Lock()
	thawed := l.thawed
	l.mu.Unlock()
	<-thawed
}

// join carries bytes between a connection and one of its own to the target.
func (l *link) join(near net.Conn) {
	defer near.Close()
	l.pass()
	far, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !l.hold(near, far) {
		return
	}
	defer l.release(near, far)
	var back sync.WaitGroup
	back.Go(func() { l.carry(near, far) })
	l.carry(far, near)
	back.Wait()
}

// carry copies until either end is closed, and then closes both.
func (l *link) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.pass()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold remembers connections; not when the link is cut.
func (l *link) hold(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		if !l.cut {
			l.conns[conn] = struct{}{}
		}
	}
	return !l.cut
}

func (l *link) release(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		delete(l.conns, conn)
	}
}
