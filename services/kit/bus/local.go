package bus

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// Local is an embedded server of this process, which has no port, with the functions that
// Wake calls.
type Local struct {
	nats.InProcessConnProvider

	mu    sync.RWMutex
	woken map[string]map[*func()]struct{} // by subject
}

// NewLocal returns a Local for nats.InProcessServer. A process needs only one.
func NewLocal(server nats.InProcessConnProvider) *Local {
	return &Local{InProcessConnProvider: server, woken: map[string]map[*func()]struct{}{}}
}

// Private reports whether a connection is to the embedded server of this process, which
// has no port, so that no other process can publish or subscribe.
func Private(conn *nats.Conn) bool { return conn.Opts.InProcessServer != nil }

// Wake calls the functions of OnWake for a subject: without a message, whose way through the
// server takes the work of five goroutines. It does nothing unless the connection is to a Local.
func Wake(conn *nats.Conn, subject string) {
	local, ok := conn.Opts.InProcessServer.(*Local)
	if !ok {
		return
	}
	local.mu.RLock()
	defer local.mu.RUnlock()
	for f := range local.woken[subject] {
		(*f)()
	}
}

// OnWake makes Wake call a function, which must not block, until stop is called. It does
// nothing unless the connection is to a Local.
func OnWake(conn *nats.Conn, subject string, f func()) (stop func()) {
	local, ok := conn.Opts.InProcessServer.(*Local)
	if !ok {
		return func() {}
	}
	local.mu.Lock()
	defer local.mu.Unlock()
	if local.woken[subject] == nil {
		local.woken[subject] = map[*func()]struct{}{}
	}
	local.woken[subject][&f] = struct{}{}
	return func() {
		local.mu.Lock()
		defer local.mu.Unlock()
		delete(local.woken[subject], &f)
	}
}
