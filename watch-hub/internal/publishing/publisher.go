// Package publishing puts changes and the progress of the watch hub on the bus. Changes of a type share
// messages, which are sealed. It neither waits for NATS nor knows whether messages arrive. It serves
// "Watch procedure" of the specification.
package publishing

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

const (
	// Tick is the average time between publications under load, whose changes then share
	// messages.
	Tick = 500 * time.Microsecond
	// ahead is how far publications may be ahead of one per tick. As long as there are fewer,
	// each change is published at once: a deletion usually follows another change of the
	// object within milliseconds, and its author then expects it in its cache.
	ahead = 32 * Tick
	// messageBytes is the size at which a message is full. A single change may be
	// larger.
	messageBytes = 256 << 10
	// freeBuffers bounds the pool of buffers.
	freeBuffers = 8
	// sealBytes is more than what a seal adds to a message.
	sealBytes = 256
)

// Publisher publishes changes on the bus. It does not know whether they arrive:
// followers detect losses. It must be used by one goroutine.
type Publisher struct {
	// Master returns the current key; nil if there is none.
	Master func() *seal.Master
	// Tracer may be nil.
	Tracer *tracing.Tracer
	// Held reports whether the hub's window has a change. On a bus of this process, followers are
	// woken and read such changes from there, without a message or a copy. It is nil on another bus.
	Held func(services.Change) bool

	bus    *nats.Conn
	log    *slog.Logger
	sealer *seal.Sealer // with the key of the previous message
	open   map[resource.GroupResource]*message
	due    time.Time // the time of the next flush with one per tick
	timer  *time.Timer
	free   [][]byte      // buffers to reuse
	out    *outbox       // on a bus that other processes can reach
	broken atomic.Bool   // a change since the last flush could not be published
	lost   chan struct{} // receives when that was found after the flush
}

// message is a sequence of changes of one type.
type message struct {
	subject string
	data    []byte         // of the changes that are not held
	held    bool           // whether there are others
	spans   []tracing.Span // of the changes whose write was sampled
}

// New returns a Publisher on a bus.
func New(conn *nats.Conn, master func() *seal.Master, log *slog.Logger) *Publisher {
	p := &Publisher{bus: conn, log: log, Master: master, open: map[resource.GroupResource]*message{}, timer: time.NewTimer(Tick), lost: make(chan struct{}, 1)}
	p.timer.Stop()
	p.out = &outbox{bus: conn, fail: p.failLater}
	return p
}

// Add appends a change to the pending message of its type. Types do not wait for each
// other; within a type the order of revisions is kept.
func (p *Publisher) Add(c services.Change) {
	gr := c.Object.Key.GroupResource
	m := p.open[gr]
	if m != nil && len(m.data)+len(c.Object.JSON) > messageBytes {
		p.send(m)
		m = nil
	}
	if m == nil {
		m = &message{subject: changes.Subject(gr), data: p.buffer()}
		p.open[gr] = m
	}
	if p.Held != nil && p.Held(c) {
		m.held = true
	} else {
		data, err := changes.AppendChange(m.data, c)
		if err != nil {
			p.fail("a change cannot be encoded", err)
			return
		}
		m.data = data
	}
	if span := p.Tracer.Resume(context.Background(), "published", c.Trace); span.Recording() {
		m.spans = append(m.spans, span)
	}
}

// Ready reports whether there are changes and they may be published now. If it is too
// early, Waited fires when they may.
func (p *Publisher) Ready(now time.Time) bool {
	if len(p.open) == 0 {
		return false
	}
	from := p.due.Add(-ahead)
	if from.After(now) {
		p.timer.Reset(from.Sub(now))
	}
	return !from.After(now)
}

// Lost receives when a change was lost after the Flush that published it.
func (p *Publisher) Lost() <-chan struct{} { return p.lost }

// Waited fires when the pending messages are to be flushed.
func (p *Publisher) Waited() <-chan time.Time { return p.timer.C }

// Flush publishes the pending messages. It returns false if a change was lost since the
// last flush.
func (p *Publisher) Flush(now time.Time) (whole bool) {
	if len(p.open) > 0 {
		if p.due.Before(now) {
			p.due = now
		}
		p.due = p.due.Add(Tick)
	}
	for _, m := range p.open {
		p.send(m)
	}
	clear(p.open)
	return !p.broken.Swap(false)
}

// send publishes a message, and wakes the followers of changes that are not in it. It fails if
// the message exceeds the server's limit.
func (p *Publisher) send(m *message) {
	if m.held {
		bus.Wake(p.bus, m.subject) // who follows later replays what is in the window
	}
	var err error
	if len(m.data) > 0 {
		err = p.publish(m.subject, m.data, m.spans)
	} else {
		end(m.spans, nil)
	}
	if err != nil {
		p.fail("publishing changes", err)
		end(m.spans, err)
	}
	if len(p.free) < freeBuffers && cap(m.data) <= 2*messageBytes {
		p.free = append(p.free, m.data[:0]) // publish has copied it
	}
}

func end(spans []tracing.Span, err error) {
	for _, span := range spans {
		span.End(err)
	}
}

var (
	// ErrNoKey means that there is no key yet.
	ErrNoKey = errors.New("no key to encrypt with")
	errFull  = errors.New("NATS does not accept messages fast enough")
)

// publish seals and sends a message, and ends its spans unless it fails. On a bus that only this process
// can reach, messages are not sealed and are published at once.
func (p *Publisher) publish(subject string, content []byte, spans []tracing.Span) error {
	if bus.Private(p.bus) {
		err := p.bus.Publish(subject, content)
		if err == nil {
			end(spans, nil)
		}
		return err
	}
	master := p.Master()
	if master == nil {
		return ErrNoKey
	}
	if p.sealer == nil || p.sealer.Master() != master {
		p.sealer = seal.NewSealer(master)
	}
	sealed, err := p.sealer.Seal(make([]byte, 0, len(content)+sealBytes), subject, content)
	if err != nil {
		return err
	}
	if !p.out.put(outgoing{subject, sealed, spans}) {
		return errFull
	}
	return nil
}

// buffer returns an empty buffer for a message.
func (p *Publisher) buffer() []byte {
	last := len(p.free) - 1
	if last < 0 {
		return nil
	}
	b := p.free[last]
	p.free = p.free[:last]
	return b
}

// Progress publishes how far the hub is, after all changes before it.
func (p *Publisher) Progress(progress services.Progress) {
	data, err := rpc.EncodeProgress(progress)
	if err == nil {
		err = p.publish(changes.SubjectProgress, data, nil)
	}
	if err != nil {
		p.fail("publishing progress", err)
	}
}

func (p *Publisher) fail(what string, err error) {
	p.broken.Store(true)
	p.log.Debug(what, "error", err)
}

// failLater is fail for the outbox.
func (p *Publisher) failLater(what string, err error) {
	p.fail(what, err)
	select {
	case p.lost <- struct{}{}:
	default:
	}
}
