// Package pace ends requests whose client is too slow to send the body or to read the
// response, on HTTP/1.1 and HTTP/2. It requires progress: a large body or response may
// take any time while data is transferred. It does not parse requests.
//
// Transfers in progress are in a list that one goroutine scans a few times a second. So
// a transfer that does not block needs no allocation and no timer.
package pace

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/records"
)

// Config holds the limits of a Pacer.
type Config struct {
	// Grace is the time until the first byte of a body must arrive, and Rate the minimum
	// number of bytes per second after that.
	Grace time.Duration
	Rate  int64
	// Stall is how long a client may take to accept a piece of a response.
	Stall time.Duration
	// Metrics may be nil.
	Metrics *prometheus.Registry
}

const (
	// tick is the period of the scan.
	tick = 200 * time.Millisecond
	// restAfter is the number of scans without a transfer after which scanning stops, so that an
	// idle process is not woken up.
	restAfter = 25
	// piece is the maximum number of bytes of one Write to the connection.
	piece = 64 << 10
)

// Pacer watches the transfers of a server.
type Pacer struct {
	grace, stall int64 // in ticks
	rate         int64 // bytes per tick
	patience     Config
	ended        *prometheus.CounterVec

	restAfter int
	now       atomic.Int64 // in ticks; it stands still while resting
	resting   atomic.Bool  // nothing is scanned, as there is no transfer
	wake      chan struct{}
	used      atomic.Bool // since the last scan
	mu        sync.Mutex
	list      transfer // the head of a ring
}

// New returns a Pacer. It enforces its limits while Run runs.
func New(c Config) *Pacer {
	p := &Pacer{grace: int64(c.Grace / tick), stall: int64(c.Stall / tick), rate: max(1, c.Rate*int64(tick)/int64(time.Second)), patience: c,
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_slow_clients_total",
			Help: "Requests ended because the client was too slow to send the body or to read the response."}, []string{"transfer"})}
	p.wake, p.restAfter = make(chan struct{}, 1), restAfter
	p.list.next, p.list.previous = &p.list, &p.list
	if c.Metrics != nil {
		c.Metrics.MustRegister(p.ended)
	}
	return p
}

// Run scans the transfers until ctx ends.
func (p *Pacer) Run(ctx context.Context) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for idle := 0; ; {
		select {
		case <-ticks.C:
		case <-p.wake:
			ticks.Reset(tick)
		case <-ctx.Done():
			return nil
		}
		p.scan()
		if idle++; p.used.Swap(false) || p.transfers() {
			idle = 0
		}
		if idle == p.restAfter {
			idle = 0
			p.rest(ticks)
		}
	}
}

// rest stops the ticks until the next use.
func (p *Pacer) rest(ticks *time.Ticker) {
	p.resting.Store(true)
	if p.used.Load() && p.resting.CompareAndSwap(true, false) {
		return // it was used at the same moment
	}
	ticks.Stop()
}

func (p *Pacer) transfers() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list.next != &p.list
}

// time returns the time in ticks, for a transfer or a deadline that begins.
func (p *Pacer) time() int64 {
	if !p.used.Load() {
		p.used.Store(true)
		if p.resting.CompareAndSwap(true, false) {
			p.wake <- struct{}{}
		}
	}
	return p.now.Load()
}

// transfer is a blocking read or write in progress.
type transfer struct {
	previous, next *transfer
	exchange       *Exchange
	body           bool  // of the request body; else of the response
	began          int64 // in ticks
	bytes          int64 // of a body: received so far; of a response: left to write
	stalled        bool  // Holder.Stalled has been called
	ending         chan struct{}
}

// scan ends the transfers that are too slow.
func (p *Pacer) scan() {
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

// tooSlow reports whether a transfer must end. It calls Holder.Stalled first if a response
// has stalled.
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

// end unblocks the transfer with a deadline in the past.
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

// begin adds a transfer to the list.
func (p *Pacer) begin(t *transfer) {
	p.mu.Lock()
	t.previous, t.next = p.list.previous, &p.list
	t.previous.next, p.list.previous = t, t
	p.mu.Unlock()
}

// done removes a transfer from the list. After it returns, no other goroutine uses the
// connection.
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

// Methods of the ResponseWriters of both HTTP versions.
type (
	readDeadline  interface{ SetReadDeadline(time.Time) error }
	writeDeadline interface{ SetWriteDeadline(time.Time) error }
	flusher       interface{ FlushError() error }
)

// Exchange is a request and its response, and the ResponseWriter to use for it. Its
// zero value is ready for Begin.
type Exchange struct {
	http.ResponseWriter
	pacer  *Pacer
	client context.Context // ends when the client disconnects
	conn   *records.Conn   // nil for HTTP/1.1
	holder Holder

	reading, writing transfer
	body             body
	until            int64       // in ticks: deadline of the whole body; 0 for none
	over             atomic.Bool // the client was too slow: nothing more is written
	unread           bool        // the body may not have been received completely
	bounded          bool        // the unread part has a deadline
	hijacked         bool
	ending           bool // the connection knows that the response is about to end
}

// Begin enforces the limits for a request. It replaces the body; the response must be
// written to x. The caller must call End when the response is complete.
func (p *Pacer) Begin(x *Exchange, w http.ResponseWriter, r *http.Request) {
	x.ResponseWriter, x.pacer, x.client = w, p, r.Context()
	x.conn = records.Of(x.client)
	x.reading.exchange, x.reading.body = x, true
	x.writing.exchange = x
	if r.Body != nil && r.ContentLength != 0 { // HTTP/2 does not use http.NoBody for a GET
		x.unread = true
		x.body = body{x: x, from: r.Body}
		r.Body = &x.body
	}
}

// Within sets the time from now within which the whole body must arrive.
func (x *Exchange) Within(d time.Duration) { x.until = x.pacer.time() + int64(d/tick) + 1 }

// Holder owns resources that other requests could use while a response is stalled.
type Holder interface {
	// Stalled is called once, when a write of the response blocks, with the remaining
	// bytes of that write. If it returns false the exchange ends. It must not block.
	Stalled(left int64) bool
}

// Tell sets the Holder, which may be nil. It must not be called during a write.
func (x *Exchange) Tell(h Holder) { x.holder = h }

// End sets deadlines for what the server does after the handler: it sends the buffered
// rest of the response and discards the rest of the body.
func (x *Exchange) End(r *http.Request) {
	x.end()
	if x.hijacked || r.ProtoMajor != 1 {
		return
	}
	x.boundUnread()
	if c, ok := x.ResponseWriter.(writeDeadline); ok && !x.over.Load() {
		_ = c.SetWriteDeadline(time.Now().Add(x.pacer.patience.Stall)) // the server clears it for the next request
	}
}

// end notifies the connection that the rest of the response follows at once.
func (x *Exchange) end() {
	if !x.ending {
		x.ending = true
		x.conn.Ending()
	}
}

// whole reports whether a piece of the response is all of its body, and short.
func (x *Exchange) whole(b []byte) bool {
	if x.conn == nil || len(b) > records.Short {
		return false
	}
	n, err := strconv.Atoi(x.Header().Get("Content-Length"))
	return err == nil && n == len(b)
}

// boundUnread sets a deadline for an unread body when the response begins: HTTP/1.1
// discards the body before it responds.
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

// Write implements http.ResponseWriter. It fails once the client has been too slow.
func (x *Exchange) Write(b []byte) (n int, err error) {
	x.boundUnread()
	if x.whole(b) {
		x.end()
	}
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
	t.began, t.bytes = x.pacer.time(), int64(left)
	x.pacer.begin(t)
}

// FlushError sends what has been written so far.
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
	if x.bounded && err == nil { // the body has been discarded: nothing more is expected from the client
		x.bounded, x.unread = false, false
		if c, ok := x.ResponseWriter.(readDeadline); ok {
			_ = c.SetReadDeadline(time.Time{})
		}
	}
	return err
}

// Flush implements http.Flusher.
func (x *Exchange) Flush() { _ = x.FlushError() }

// Hijack implements http.Hijacker. The caller owns the connection, and limits no longer
// apply.
func (x *Exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(x.ResponseWriter).Hijack()
	x.hijacked = err == nil
	return conn, rw, err
}

// Unwrap supports http.ResponseController.
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
		t.began = b.x.pacer.time()
	}
	b.x.pacer.begin(t)
	n, err := b.from.Read(to)
	b.x.pacer.done(t)
	t.bytes += int64(n)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		b.x.unread = false // the HTTP/1.1 server itself reads the connection afterwards
	}
	return n, err
}

func (b *body) Close() error { return b.from.Close() }

var (
	_ http.Flusher  = (*Exchange)(nil)
	_ http.Hijacker = (*Exchange)(nil)
)
