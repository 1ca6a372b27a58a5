// Package pace ends the exchanges of clients that are too slow to send a body or
// to take an answer, on HTTP/1.1 and HTTP/2 alike. It asks for progress and not
// for speed: a large body or answer may take its time as long as it moves. It
// knows nothing of requests but the connection below them.
//
// Transfers are in a list while they are under way, which one goroutine looks at a
// few times a second. So nothing is allocated, and no timer is set, for those that
// do not wait for their client.
package pace

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config says how patient a Pacer is.
type Config struct {
	// Grace is how long a body may take to begin, and Rate how many bytes of it
	// have to come each second after that.
	Grace time.Duration
	Rate  int64
	// Stall is how long a client may take to accept a piece of an answer.
	Stall time.Duration
	// Metrics may be nil.
	Metrics *prometheus.Registry
}

const (
	// tick is the pause between two looks at the transfers.
	tick = 200 * time.Millisecond
	// piece is how much of an answer is handed to the connection at once.
	piece = 64 << 10
)

// Pacer watches over the exchanges of a server.
type Pacer struct {
	grace, stall int64 // in ticks
	rate         int64 // bytes per tick
	patience     Config
	ended        *prometheus.CounterVec

	now  atomic.Int64 // in ticks
	mu   sync.Mutex
	list transfer // the head of a ring
}

// New returns a Pacer, which works while Run does.
func New(c Config) *Pacer {
	p := &Pacer{grace: int64(c.Grace / tick), stall: int64(c.Stall / tick), rate: max(1, c.Rate*int64(tick)/int64(time.Second)), patience: c,
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_slow_clients_total",
			Help: "Requests that were ended because their client was too slow, by what it was slow with."}, []string{"transfer"})}
	p.list.next, p.list.previous = &p.list, &p.list
	if c.Metrics != nil {
		c.Metrics.MustRegister(p.ended)
	}
	return p
}

// Run looks at the transfers until ctx ends.
func (p *Pacer) Run(ctx context.Context) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			p.look()
		case <-ctx.Done():
			return nil
		}
	}
}

// transfer is a read or a write that is under way.
type transfer struct {
	previous, next *transfer
	exchange       *Exchange
	body           bool  // it is of the request's body
	began          int64 // in ticks
	bytes          int64 // of a body: that have come; of an answer: that are left
	stalled        bool  // the seat was given away
	ending         chan struct{}
}

// look ends the transfers that are too slow.
func (p *Pacer) look() {
	now := p.now.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := p.list.next; t != &p.list; {
		next := t.next
		if p.tooSlow(t, now) {
			t.remove()
			t.ending = make(chan struct{})
			go t.end()
		}
		t = next
	}
}

// tooSlow reports whether a transfer has to end. An answer that does not move
// gives its seat to others first.
func (p *Pacer) tooSlow(t *transfer, now int64) bool {
	took := now - t.began
	if t.body {
		return took > p.grace+t.bytes/p.rate || t.exchange.until != 0 && now > t.exchange.until
	}
	if took < 2 {
		return false
	}
	x := t.exchange
	if !t.stalled && x.holder != nil {
		t.stalled = true
		if !x.holder.Stalled(t.bytes) {
			return true
		}
	}
	return took > p.stall || x.client.Err() != nil
}

// end makes a blocked transfer return an error.
func (t *transfer) end() {
	defer close(t.ending)
	x, past := t.exchange, time.Unix(1, 0)
	if t.body {
		x.pacer.ended.WithLabelValues("body").Inc()
		if c, ok := x.ResponseWriter.(readDeadline); ok {
			_ = c.SetReadDeadline(past)
		}
		return
	}
	x.pacer.ended.WithLabelValues("answer").Inc()
	x.over.Store(true)
	if c, ok := x.ResponseWriter.(writeDeadline); ok {
		_ = c.SetWriteDeadline(past)
	}
}

func (t *transfer) remove() {
	t.previous.next, t.next.previous = t.next, t.previous
	t.previous, t.next = nil, nil
}

// begin puts a transfer into the list.
func (p *Pacer) begin(t *transfer) {
	p.mu.Lock()
	t.previous, t.next = p.list.previous, &p.list
	t.previous.next, p.list.previous = t, t
	p.mu.Unlock()
}

// done takes a transfer out of the list. The connection is the exchange's alone
// again when it returns.
func (p *Pacer) done(t *transfer) {
	p.mu.Lock()
	ending := t.ending
	if ending == nil {
		t.remove()
	}
	p.mu.Unlock()
	if ending != nil {
		<-ending
		t.ending = nil
	}
}

// The parts of a connection that both versions of HTTP have.
type (
	readDeadline  interface{ SetReadDeadline(time.Time) error }
	writeDeadline interface{ SetWriteDeadline(time.Time) error }
	flusher       interface{ FlushError() error }
)

// Exchange is one request and its answer: the ResponseWriter to use for the
// answer. Its zero value is ready for Begin.
type Exchange struct {
	http.ResponseWriter
	pacer  *Pacer
	client context.Context // ends when the client goes
	holder Holder

	reading, writing transfer
	body             body
	until            int64       // in ticks: when the whole body has to be there; 0 for no limit
	over             atomic.Bool // the client was too slow: nothing is written any more
	unread           bool        // a part of the body may not have come
	bounded          bool        // that part has a deadline
	hijacked         bool
}

// Begin watches over a request from now on: its body, which is replaced, and the
// answer that is written to x. End must be called when the answer is complete.
func (p *Pacer) Begin(x *Exchange, w http.ResponseWriter, r *http.Request) {
	x.ResponseWriter, x.pacer, x.client = w, p, r.Context()
	x.reading.exchange, x.reading.body = x, true
	x.writing.exchange = x
	if r.Body != nil && r.ContentLength != 0 { // of HTTP/2, the body of a GET is not http.NoBody
		x.unread = true
		x.body = body{x: x, from: r.Body}
		r.Body = &x.body
	}
}

// Within bounds the time from now in which the whole body has to come.
func (x *Exchange) Within(d time.Duration) { x.until = x.pacer.now.Load() + int64(d/tick) + 1 }

// Holder is who holds what others could use while an answer is under way.
type Holder interface {
	// Stalled is called once, when the client keeps the answer waiting, with the bytes
	// that are left of what is being written. When it returns false the exchange ends.
	// It must not block.
	Stalled(left int64) bool
}

// Tell names the Holder; nil for none. It is called between two writes.
func (x *Exchange) Tell(h Holder) { x.holder = h }

// End bounds what the server still does for the request: it may have a piece of
// the answer left to send, and a body to skip.
func (x *Exchange) End(r *http.Request) {
	if x.hijacked || r.ProtoMajor != 1 {
		return
	}
	x.boundUnread()
	if c, ok := x.ResponseWriter.(writeDeadline); ok && !x.over.Load() {
		_ = c.SetWriteDeadline(time.Now().Add(x.pacer.patience.Stall)) // the server clears it for the next request
	}
}

// boundUnread sets a deadline for a body that nobody has read when the answer
// begins: HTTP/1.1 skips it before it answers.
func (x *Exchange) boundUnread() {
	if !x.unread || x.bounded {
		return
	}
	x.bounded = true
	if c, ok := x.ResponseWriter.(readDeadline); ok {
		_ = c.SetReadDeadline(time.Now().Add(x.pacer.patience.Grace))
	}
}

// WriteHeader implements http.ResponseWriter.
func (x *Exchange) WriteHeader(status int) {
	x.boundUnread()
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. It fails once the client was too slow.
func (x *Exchange) Write(b []byte) (n int, err error) {
	x.boundUnread()
	for {
		m, err := x.write(b[n:min(len(b), n+piece)], len(b)-n)
		n += m
		if err != nil || n >= len(b) {
			return n, err
		}
	}
}

func (x *Exchange) write(b []byte, left int) (int, error) {
	if x.over.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	x.start(left)
	defer x.pacer.done(&x.writing)
	return x.ResponseWriter.Write(b)
}

func (x *Exchange) start(left int) {
	t := &x.writing
	t.began, t.bytes = x.pacer.now.Load(), int64(left)
	x.pacer.begin(t)
}

// FlushError sends what was written so far.
func (x *Exchange) FlushError() error {
	f, ok := x.ResponseWriter.(flusher)
	if !ok {
		return http.NewResponseController(x.ResponseWriter).Flush()
	}
	if x.over.Load() {
		return os.ErrDeadlineExceeded
	}
	x.boundUnread()
	x.start(0)
	err := f.FlushError()
	x.pacer.done(&x.writing)
	if x.bounded && err == nil { // the body was skipped: the client may be silent now
		x.bounded, x.unread = false, false
		if c, ok := x.ResponseWriter.(readDeadline); ok {
			_ = c.SetReadDeadline(time.Time{})
		}
	}
	return err
}

// Flush is FlushError for the callers of http.Flusher.
func (x *Exchange) Flush() { _ = x.FlushError() }

// Hijack implements http.Hijacker: the connection is the caller's, and nobody
// bounds it any more.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(x.ResponseWriter).Hijack()
	x.hijacked = err == nil
	return conn, rw, err
}

// Unwrap lets http.ResponseController find the connection.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// body is the body of a request.
type body struct {
	x    *Exchange
	from interface {
		Read([]byte) (int, error)
		Close() error
	}
	began bool
}

func (b *body) Read(to []byte) (int, error) {
	t := &b.x.reading
	if !b.began {
		b.began = true
		t.began = b.x.pacer.now.Load()
	}
	b.x.pacer.begin(t)
	n, err := b.from.Read(to)
	b.x.pacer.done(t)
	t.bytes += int64(n)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		b.x.unread = false // HTTP/1.1 watches the connection from here on
	}
	return n, err
}

func (b *body) Close() error { return b.from.Close() }

var (
	_ http.Flusher  = (*Exchange)(nil)
	_ http.Hijacker = (*Exchange)(nil)
)
