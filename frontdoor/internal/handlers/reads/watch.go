package reads

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/feed"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads/watches"
	"github.com/portico-platform/portico/frontdoor/internal/http/permitted"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
)

// bookmarkPeriod is the interval of bookmarks, for watches that request them.
const bookmarkPeriod = time.Minute

// watching is one watch in progress.
type watching struct {
	*Handlers
	r       *request.Request
	begun   bool // the headers have been sent
	options request.ReadOptions
	own     *declared // the part of the field selector that the feed does not evaluate; nil for none
	form    wire.Form
	encoder *wire.Encoder
	frames  *wire.EventEncoder
	out     stream
	buffer  []byte // nil between flushes
	entry   *watches.Entry
	// delivered is the revision of the last event in the buffer.
	delivered int64
	// delivering are the spans of events in the buffer, if both the watch and the write
	// that caused the event were sampled.
	delivering []tracing.Span
}

// Watch serves the changes of a collection or of one object as they happen (sections
// "Watch procedure" and "Watch events"). An error after the response has started is
// sent as an ERROR event.
func (h *Handlers) Watch(w http.ResponseWriter, r *request.Request) error {
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.Watch)
	if err != nil {
		return err
	}
	o, err := request.ParseReadOptions(r)
	if err != nil {
		return err
	}
	if o.Selector, err = watchSelector(r, &o); err != nil {
		return err
	}
	r.Engine = r.Engine.Lasting(r.Type)
	own, err := declaredFields(r, o.FieldSelector)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead || o.Timeout < 0 { // a HEAD response has no body for events; the time is over
		w.Header().Set("Content-Type", form.ContentType)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	if o.Timeout == 0 {
		o.Timeout = h.WatchTimeout + rand.N(h.WatchTimeout)
	}
	ctx, cancel := context.WithTimeout(r.Context(), o.Timeout)
	defer cancel()
	defer context.AfterFunc(h.Draining, cancel)()
	h.open.Add(1)
	defer h.open.Add(-1)
	ctx, entry := h.Watches.Open(ctx, describe(r, o))
	defer entry.Close()
	encoder := h.Codec.Encoder(form, r.Type)
	x := &watching{Handlers: h, r: r, options: o, own: own, form: form, encoder: encoder, frames: encoder.Events(), out: openStream(context.WithoutCancel(r.Context()), w, r.Request), entry: entry}
	defer x.out.end()
	return x.serve(ctx)
}

// describe returns what administrators see of a watch.
func describe(r *request.Request, o request.ReadOptions) watches.Watch {
	return watches.Watch{User: r.User.Name, UserAgent: r.UserAgent(), Client: r.RemoteAddr, Group: r.Type.Group, Version: r.Type.Version,
		Resource: r.Type.Resource, Namespace: r.Namespace, LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
}

// watchSelector adds the name of the path, if any, to the selector.
func watchSelector(r *request.Request, o *request.ReadOptions) (resource.Selector, error) {
	if r.Name == "" {
		return o.Selector, nil
	}
	if o.FieldSelector != "" {
		o.FieldSelector += ","
	}
	o.FieldSelector += "metadata.name=" + r.Name
	return resource.ParseSelector(o.LabelSelector, o.FieldSelector)
}

// serve sends the initial state, if requested, and then the changes.
func (x *watching) serve(ctx context.Context) error {
	after, err := x.start(ctx)
	if err != nil {
		if why := x.r.Withdrawn(); why != nil {
			err = why
		}
		if x.begun {
			return x.fail(err)
		}
		return err
	}
	if err := x.begin(); err != nil {
		return err
	}
	if x.expired(x.r, after) {
		return x.fail(services.Expired("too old resource version: %d (changes are available after %d)", after, x.CustomSince))
	}
	if set := x.r.Permitted; set != nil && !x.options.Synthetic() && !set.Holds(after) {
		return x.fail(permitted.Changed()) // there may be objects that the client has not listed
	}
	selection, err := x.selection(after)
	if err != nil {
		return x.fail(err)
	}
	watcher, err := x.Feeds.Watch(ctx, selection)
	if err != nil {
		return x.fail(err)
	}
	defer watcher.Close()
	if err := x.flush(); err != nil {
		return nil
	}
	x.r.Underway(http.StatusOK)
	return x.follow(ctx, watcher)
}

// selection returns what the watch selects.
func (x *watching) selection(after int64) (s feed.Selection, err error) {
	s = feed.Selection{GroupResource: x.r.Type.Key, Namespace: x.r.Namespace, Selector: x.options.Selector, After: after}
	if x.own != nil {
		s.Selector, err = resource.ParseSelector(x.options.LabelSelector, x.own.rest)
	}
	if x.r.Permitted.Restricts() {
		s.Namespaces = &x.r.Permitted.Namespaces
	}
	return s, err
}

// begin sends the headers.
func (x *watching) begin() error {
	if x.begun {
		return nil
	}
	x.begun = true
	return x.out.begin(x.form.ContentType)
}

// start implements the "Watch" table of section "Read consistency". It sends the
// existing objects if the client requests them, and returns the revision to continue
// after.
func (x *watching) start(ctx context.Context) (int64, error) {
	o := x.options
	if !o.Synthetic() {
		if err := x.comparable(ctx); err != nil {
			return 0, err
		}
		if o.Revision == 0 {
			return x.Store.Revision(ctx, x.r.Type.Key)
		}
		return o.Revision, nil
	}
	r := services.ListRequest{GroupResource: x.r.Type.Key, Namespace: x.r.Namespace, Read: o.GetRead(),
		LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
	store, costs, err := x.reader(x.r, o.FieldSelector)
	if err != nil {
		return 0, err
	}
	var read measure
	after, err := services.ForEach(ctx, store, r, func(object services.Object) error {
		read.add(&object)
		if err := x.begin(); err != nil {
			return err
		}
		object, err := x.r.Engine.View(ctx, object, x.r.Type)
		if err != nil {
			return err
		}
		x.buffer, err = x.frames.Event(x.buffer, services.Added.String(), object)
		if err != nil || len(x.buffer) < wireChunk {
			return err
		}
		return x.write()
	})
	if err == nil {
		read.record(costs, r)
	}
	if err == nil && o.InitialEvents != nil && o.Bookmarks {
		x.buffer, err = x.frames.Bookmark(x.buffer, after, map[string]string{x.Vocabulary.InitialEventsEnd: "true"})
	}
	return after, err
}

// wireChunk is the approximate number of bytes of one write to the connection.
const wireChunk = 32 << 10

// buffers holds empty buffers, since a watch that waits for events needs none.
var buffers = sync.Pool{New: func() any { return &[]byte{} }}

// follow sends changes until the client disconnects, the watch times out or the server
// drains. A client that requested bookmarks gets a final one to resume from.
func (x *watching) follow(ctx context.Context, watcher *feed.Watcher) error {
	bookmark := time.Now().Add(bookmarkPeriod)
	for {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if x.options.Bookmarks {
			wait, cancel = context.WithDeadline(ctx, bookmark)
		}
		events, err := watcher.Next(wait)
		cancel()
		switch {
		case x.r.Context().Err() != nil:
			if why := x.r.Withdrawn(); why != nil {
				return x.fail(why) // before any event
			}
			return nil
		case err == nil:
			err = x.send(events)
		case ctx.Err() != nil, errors.Is(err, feed.ErrEnded):
			return x.finish(watcher)
		case errors.Is(err, context.DeadlineExceeded) && x.options.Bookmarks:
			bookmark = time.Now().Add(bookmarkPeriod)
			err = x.bookmark(watcher.Position())
		default:
			return x.fail(err)
		}
		if err == nil {
			err = x.flush()
		}
		var unencoded encodingError
		if errors.As(err, &unencoded) {
			return x.fail(unencoded.error)
		}
		if err != nil {
			return nil // the client has disconnected
		}
		x.pacer.pause(ctx)
	}
}

// send appends events, and lets go of each.
func (x *watching) send(events []feed.Event) error {
	if x.buffer == nil {
		x.buffer = *buffers.Get().(*[]byte)
	}
	for i, e := range events {
		events[i] = feed.Event{} // the client may be slow
		if x.own != nil {
			seen, ok, err := x.own.event(context.WithoutCancel(x.r.Context()), e)
			if err != nil {
				return encodingError{err}
			}
			if e = seen; !ok {
				continue
			}
		}
		frame, err := x.frame(e)
		if err != nil {
			return encodingError{err}
		}
		x.buffer, x.delivered = append(x.buffer, frame...), e.Entry.Object.Revision
		if span := tracing.Linked(x.r.Context(), "event", e.Entry.Trace); span.Recording() {
			x.delivering = append(x.delivering, span)
		}
		if len(x.buffer) >= wireChunk {
			if err := x.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodingError reports an internal failure to the client.
type encodingError struct{ error }

// frame returns the encoded event. Frames that are the same for every watcher of the
// form are encoded once.
func (x *watching) frame(e feed.Event) ([]byte, error) {
	encode := func() ([]byte, error) {
		object, err := x.r.Engine.View(context.WithoutCancel(x.r.Context()), e.Object(), x.r.Type)
		if err != nil {
			return nil, err
		}
		return x.frames.Event(nil, e.Type.String(), object)
	}
	if x.form.As != wire.Whole {
		return encode()
	}
	return e.Entry.Encoded(x.form.ContentType+x.r.Type.APIVersion()+strconv.Itoa(int(e.Type)), encode)
}

func (x *watching) bookmark(revision int64) (err error) {
	x.buffer, err = x.frames.Bookmark(x.buffer, revision, nil)
	return err
}

// finish ends a watch that has timed out, or whose type is no longer served.
func (x *watching) finish(watcher *feed.Watcher) error {
	if x.options.Bookmarks && x.bookmark(watcher.Position()) == nil {
		_ = x.flush()
	}
	return nil
}

// fail ends a watch with an ERROR event.
func (x *watching) fail(err error) error {
	if begin := x.begin(); begin != nil {
		return begin
	}
	if x.buffer, err = x.frames.Error(x.buffer, err); err == nil {
		_ = x.flush()
	}
	return nil
}

func (x *watching) write() error {
	x.entry.Sending(len(x.buffer))
	err := x.out.send(x.buffer)
	x.buffer = x.buffer[:0]
	return err
}

func (x *watching) flush() error {
	start := time.Now()
	if len(x.buffer) > 0 {
		if err := x.write(); err != nil {
			return err
		}
	}
	if x.buffer != nil && cap(x.buffer) <= 2*wireChunk {
		released := x.buffer
		buffers.Put(&released)
	}
	x.buffer = nil
	err := x.out.flush()
	x.entry.Sent(x.delivered)
	x.pacer.cost.add(time.Since(start))
	for _, span := range x.delivering {
		span.End(err)
	}
	x.delivering = nil
	return err
}
