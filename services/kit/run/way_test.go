package run_test

import (
	"net"
	"sync"
	"testing"
)

// way is a proxy. While it is silent, it keeps connections open and forwards nothing, like
// a lost host.
type way struct {
	address string
	mu      sync.Mutex
	changed *sync.Cond
	silent  bool
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{address: listener.Addr().String()}
	w.changed = sync.NewCond(&w.mu)
	t.Cleanup(func() { _ = listener.Close(); w.silence(false) })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			go w.carry(from, onward)
			go w.carry(onward, from)
		}
	}()
	return w
}

func (w *way) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		for w.silent {
			w.changed.Wait()
		}
		w.mu.Unlock()
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

func (w *way) silence(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = on
	w.changed.Broadcast()
}
