package changes

import (
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// inbox buffers messages between the bus and the follower. It is bounded: on overflow it
// drops all messages, which causes a replay.
type inbox struct {
	limit int // bytes
	ready chan struct{}
	// refresh is set when the reader is to request a replay.
	refresh atomic.Bool

	mu       sync.Mutex
	messages []*nats.Msg
	bytes    int
	lost     bool
}

func newInbox(limit int) *inbox {
	return &inbox{limit: limit, ready: make(chan struct{}, 1)}
}

// put adds a message.
func (b *inbox) put(m *nats.Msg) {
	b.mu.Lock()
	if b.bytes += m.Size(); b.bytes > b.limit {
		b.messages, b.bytes, b.lost = nil, 0, true
	} else {
		b.messages = append(b.messages, m)
	}
	b.mu.Unlock()
	b.wake()
}

// lose records that messages may be missing, or that there are changes without a message.
func (b *inbox) lose() {
	b.mu.Lock()
	b.lost = true
	b.mu.Unlock()
	b.wake()
}

// take returns all messages, oldest first, and whether some are missing before
// or among them.
func (b *inbox) take() (messages []*nats.Msg, lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages, lost = b.messages, b.lost
	b.messages, b.bytes, b.lost = nil, 0, false
	return messages, lost
}

// wake signals the reader that there is something to take.
func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}
