package publishing

import (
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services/kit/tracing"
)

// outboxBytes bounds the messages that wait for NATS.
const outboxBytes = 8 << 20

// outbox publishes messages in their order without delaying the caller: the NATS client writes to its
// connection while it holds its lock, and a server that does not read would stop the window too.
type outbox struct {
	bus  *nats.Conn
	fail func(what string, err error) // called in any goroutine

	mu      sync.Mutex
	waiting []outgoing
	bytes   int
	running bool
}

// outgoing is a message that waits.
type outgoing struct {
	subject string
	data    []byte // of the outbox until it is published
	spans   []tracing.Span
}

// put adds a message. It returns false if too much waits already; the message is then lost.
func (o *outbox) put(m outgoing) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes > 0 && o.bytes+len(m.data) > outboxBytes {
		return false
	}
	o.waiting = append(o.waiting, m)
	o.bytes += len(m.data)
	if !o.running {
		o.running = true
		go o.run()
	}
	return true
}

// run publishes until nothing waits.
func (o *outbox) run() {
	for {
		o.mu.Lock()
		batch := o.waiting
		o.waiting = nil
		o.running = len(batch) > 0
		o.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			err := o.bus.Publish(m.subject, m.data)
			if err != nil {
				o.fail("publishing on the bus", err)
			}
			for _, span := range m.spans {
				span.End(err)
			}
			o.mu.Lock()
			o.bytes -= len(m.data)
			o.mu.Unlock()
		}
	}
}
