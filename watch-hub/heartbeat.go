package watchhub

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/watch-hub/internal/publishing"
)

const (
	// subjectHeartbeat is where hubs send heartbeats to each other. Followers may not
	// read it.
	subjectHeartbeat = "hubs.heartbeat"
	heartbeatEvery   = 100 * time.Millisecond
	// missedHeartbeats is how many heartbeats of its own a hub receives, since the last
	// one of the publishing hub, before it takes over.
	missedHeartbeats = 5
)

// heartbeat is sent by every hub. It is sealed, so that no other client can send one.
type heartbeat struct {
	Run string `json:"run"` // of the sending process
	N   int64  `json:"n"`   // counts up within a run
	// Term is the revision at which the sender took the leadership; 0 if it does not
	// publish.
	Term int64 `json:"term"`
}

// heartbeats finds out within about half a second that the publishing hub is dead,
// frozen or cut off from NATS; its lease in etcd takes seconds to expire.
//
// Time is measured in the hub's own heartbeats as they come back from NATS. A hub that
// was frozen itself, is cut off, or gets no CPU time does not receive these either, so it
// does not take its own fault for one of the publishing hub. Where hubs may not use the
// subject, none comes back, and the lease decides.
type heartbeats struct {
	bus    *nats.Conn
	master func() *seal.Master // the current key; nil if there is none
	log    *slog.Logger
	run    string

	mu      sync.Mutex
	term    int64 // of this hub; 0 while it does not publish
	own     int64 // the newest heartbeat of this hub that came back
	counted time.Time
	awaited *awaited
}

// awaited is the publishing hub whose heartbeats a standby waits for.
type awaited struct {
	term    int64
	newest  int64
	missed  int
	allowed int
	silent  chan struct{} // closed after allowed heartbeats were missed
}

func newHeartbeats(conn *nats.Conn, master func() *seal.Master, log *slog.Logger) *heartbeats {
	return &heartbeats{bus: conn, master: master, log: log, run: services.NewWriteID()}
}

// lead sets the term for which this hub publishes; 0 for none.
func (h *heartbeats) lead(term int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term = term
}

// await returns a channel that is closed when the hub that publishes for a term has
// missed that many heartbeats.
func (h *heartbeats) await(term int64, allowed int) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited = &awaited{term: term, allowed: allowed, silent: make(chan struct{})}
	return h.awaited.silent
}

// exchange sends and receives heartbeats until ctx ends. On a bus of this process
// there are no other hubs.
func (h *heartbeats) exchange(ctx context.Context) {
	if bus.Private(h.bus) {
		return
	}
	subscription, err := h.bus.Subscribe(subjectHeartbeat, h.receive)
	if err != nil {
		h.log.Warn("receiving heartbeats of other hubs failed, the failure of a hub is detected later", "error", err)
		return
	}
	defer func() { _ = subscription.Unsubscribe() }() // fails only when the connection is closed
	ticks := time.NewTicker(heartbeatEvery)
	defer ticks.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-ticks.C:
			h.send(n)
		case <-ctx.Done():
			return
		}
	}
}

// send sends a heartbeat, unless it would wait for a connection.
func (h *heartbeats) send(n int64) {
	master := h.master()
	if master == nil || !h.bus.IsConnected() {
		return
	}
	h.mu.Lock()
	term := h.term
	h.mu.Unlock()
	content, err := json.Marshal(heartbeat{Run: h.run, N: n, Term: term})
	if err == nil {
		content, err = seal.NewSealer(master).Seal(nil, subjectHeartbeat, content)
	}
	if err == nil {
		err = h.bus.Publish(subjectHeartbeat, content)
	}
	if err != nil {
		h.log.Debug("sending a heartbeat failed", "error", err)
	}
}

func (h *heartbeats) receive(m *nats.Msg) {
	b, err := h.open(m.Data)
	if err != nil {
		h.log.Debug("a heartbeat was refused", "error", err)
		return
	}
	h.note(b, time.Now())
}

// note records a heartbeat. Those that were delayed and arrive together count as one.
func (h *heartbeats) note(b heartbeat, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch a := h.awaited; {
	case b.Run == h.run:
		if b.N <= h.own {
			return // a copy
		}
		h.own = b.N
		if now.Sub(h.counted) < heartbeatEvery/2 {
			return
		}
		h.counted = now
		if a == nil {
			return
		}
		if a.missed++; a.missed == a.allowed {
			close(a.silent)
		}
	case a != nil && b.Term == a.term && b.N > a.newest && a.missed < a.allowed:
		a.newest, a.missed = b.N, 0
	}
}

// open opens a heartbeat with the key that seals at present. One with another key, in
// the moment in which keys are replaced, counts as lost.
func (h *heartbeats) open(message []byte) (b heartbeat, err error) {
	master := h.master()
	if master == nil {
		return b, publishing.ErrNoKey
	}
	secret, err := master.Secret(subjectHeartbeat)
	if err != nil {
		return b, err
	}
	key, err := seal.NewKey(subjectHeartbeat, secret, master.Public())
	if err != nil {
		return b, err
	}
	content, err := key.Open(message)
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal(content, &b)
}
