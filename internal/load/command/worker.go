package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/events"
	"github.com/portico-platform/portico/internal/load/wire"
)

const (
	mergePatchType = "application/merge-patch+json"
	applyType      = "application/apply-patch+yaml"
	applyQuery     = "?fieldManager=portico-load&force=true"
	// pageSize bounds a list, as those of usual clients.
	pageSize = "?limit=500"
	// prepareTimeout is how long the creation of an object before the load is tried, for example until
	// the namespace has what its objects need.
	prepareTimeout, preparePause = 30 * time.Second, 200 * time.Millisecond
	stampDigits                  = 19
)

// object is an object of a worker.
type object struct {
	kind  *kind
	name  string
	group int
}

func (o object) path() string { return o.kind.path + "/" + o.name }

// worker is one client, with objects that no other client writes.
type worker struct {
	*loading
	id      int
	limit   int // of the objects
	dial    func() (*wire.Conn, error)
	conn    *wire.Conn
	objects []object
	made    int // how many objects it created
	body    []byte
}

// prepare creates an object before the load.
func (w *worker) prepare(ctx context.Context) error {
	next := w.next()
	began := time.Now()
	for {
		_, err := w.do(ctx, wire.Request{Method: http.MethodPost, Path: next.kind.path, Body: next.kind.object(next.name, stamp(time.Now()), next.group)}, nil)
		switch {
		case err == nil:
			w.objects = append(w.objects, next)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Since(began) > prepareTimeout:
			return err
		}
		var refused *wire.StatusError
		if errors.As(err, &refused) && (refused.Code == http.StatusBadRequest || refused.Code == http.StatusUnprocessableEntity || refused.Code == http.StatusUnauthorized) {
			return err
		}
		if err := load.Pause(ctx, preparePause); err != nil {
			return context.Cause(ctx)
		}
	}
}

// next names an object that does not exist.
func (w *worker) next() object {
	w.made++
	n := w.made*w.clients + w.id
	return object{kind: &w.space.kinds[n%len(w.space.kinds)], name: fmt.Sprintf("load-%s-%d-%d", w.space.run, w.id, w.made), group: n % max(1, w.labels)}
}

// operate sends the requests of one verb. A client that has as many objects as it may deletes one
// instead of creating one, and one that has none creates one instead of using it.
func (w *worker) operate(ctx context.Context, v verb, due time.Time) {
	switch {
	case v == create && len(w.objects) >= w.limit:
		v = deleteVerb
	case v != create && v != list && len(w.objects) == 0:
		v = create
	}
	switch v {
	case list:
		w.request(ctx, v, due, wire.Request{Method: http.MethodGet, Path: w.space.kinds[rand.IntN(len(w.space.kinds))].path + pageSize})
	case create:
		o := w.next()
		if w.request(ctx, v, due, wire.Request{Method: http.MethodPost, Path: o.kind.path, Body: o.kind.object(o.name, stamp(due), o.group)}) {
			w.objects = append(w.objects, o)
		}
	case deleteVerb:
		i := rand.IntN(len(w.objects))
		o := w.objects[i]
		w.objects = slices.Delete(w.objects, i, i+1)
		w.request(ctx, v, due, wire.Request{Method: http.MethodDelete, Path: o.path()})
	default:
		w.change(ctx, v, due, w.objects[rand.IntN(len(w.objects))])
	}
}

// change reads or changes an object.
func (w *worker) change(ctx context.Context, v verb, due time.Time, o object) {
	switch v {
	case patch:
		w.request(ctx, v, due, wire.Request{Method: http.MethodPatch, Path: o.path(), Type: mergePatchType, Body: fmt.Appendf(nil, `{"metadata":{"annotations":{%s%s"}}}`, events.Stamp, stamp(due))})
	case applied:
		w.request(ctx, v, due, wire.Request{Method: http.MethodPatch, Path: o.path() + applyQuery, Type: applyType, Body: o.kind.object(o.name, stamp(due), o.group)})
	case get:
		w.request(ctx, v, due, wire.Request{Method: http.MethodGet, Path: o.path()})
	case update: // of what is there, as usual clients do
		if !w.request(ctx, get, due, wire.Request{Method: http.MethodGet, Path: o.path()}) {
			return
		}
		now := time.Now()
		if restamp(w.body, stamp(now)) {
			w.request(ctx, v, now, wire.Request{Method: http.MethodPut, Path: o.path(), Body: slices.Clone(w.body)})
		}
	}
}

// request sends a request, keeps the body of its response, and records it. It reports whether the
// response was a success.
func (w *worker) request(ctx context.Context, v verb, due time.Time, r wire.Request) bool {
	w.body = w.body[:0]
	size, err := w.do(ctx, r, func(piece []byte) { w.body = append(w.body, piece...) })
	if ctx.Err() == nil {
		w.figures.record(v, time.Since(due), size, err)
	}
	return err == nil
}

// do sends a request on the connection, which is opened if it is not there. After an error of the
// connection it returns after a pause.
func (w *worker) do(ctx context.Context, r wire.Request, sink func([]byte)) (size int64, err error) {
	if w.conn != nil && w.conn.Leaving() {
		w.conn.Close()
		w.conn = nil
	}
	if w.conn == nil {
		w.conn, err = w.dial()
	}
	if err == nil {
		size, err = w.conn.Do(r, sink)
	}
	var answered *wire.StatusError
	if err == nil || errors.As(err, &answered) {
		return size, err
	}
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
	_ = load.Pause(ctx, load.ReconnectPause)
	return 0, err
}

// stamp returns a time as watchers read it.
func stamp(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// restamp replaces the time in an object.
func restamp(body []byte, with string) bool {
	at := bytes.Index(body, []byte(events.Stamp))
	if at < 0 || len(body) < at+len(events.Stamp)+stampDigits || len(with) != stampDigits {
		return false
	}
	copy(body[at+len(events.Stamp):], with)
	return true
}
