package harness

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Event is one watch event.
type Event struct {
	Type   string
	Object Obj
}

// Watcher is an open watch.
type Watcher struct {
	t      *T
	path   string
	Resp   *http.Response
	events chan Event
	seen   []string
}

// Watch opens a watch on a list path; `watch=1` is added.
func (t *T) Watch(path string, opts ...Opt) *Watcher {
	w := t.TryWatch(path, opts...)
	if w.Resp.StatusCode != 200 {
		body, _ := io.ReadAll(w.Resp.Body)
		t.Failf("GET %s: expected status 200 for the watch, got %d: %s", w.path, w.Resp.StatusCode, short(string(body), 300))
	}
	w.events = make(chan Event, 1000)
	go func() {
		defer close(w.events)
		dec := json.NewDecoder(bufio.NewReader(w.Resp.Body))
		for {
			var e struct {
				Type   string `json:"type"`
				Object Obj    `json:"object"`
			}
			if dec.Decode(&e) != nil {
				return
			}
			if published(e.Object.Name()) {
				continue
			}
			w.events <- Event{e.Type, e.Object}
		}
	}()
	return w
}

// TryWatch opens a watch whatever the status code is; nothing is read.
func (t *T) TryWatch(path string, opts ...Opt) *Watcher {
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	if !strings.Contains(path, "watch=") {
		path += sep + "watch=1"
	}
	longer := func(r *request) { r.timeout = time.Hour }
	res, cancel := t.open("GET", path, nil, append([]Opt{longer}, opts...)...)
	t.Cleanup(func() { cancel(); res.Body.Close() })
	t.note("GET %s -> %d (watch)", N(path), res.StatusCode)
	return &Watcher{t: t, path: N(path), Resp: res}
}

// Next returns the next event other than BOOKMARK, or fails after d.
func (w *Watcher) Next(d time.Duration) Event {
	timeout := time.After(d)
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				w.t.Failf("GET %s: expected a further watch event, got the end of the stream after %q", w.path, w.seen)
			}
			w.seen = append(w.seen, e.Type+" "+e.Object.Name())
			if e.Type == "BOOKMARK" {
				continue
			}
			return e
		case <-timeout:
			w.t.Failf("GET %s: expected a further watch event within %v, got none after %q", w.path, d, w.seen)
		case <-w.t.ctx.Done():
			w.t.Failf("GET %s: the check ran past its deadline, events so far %q", w.path, w.seen)
		}
	}
}

// Expect fails unless the next event has the type and the object name given.
func (w *Watcher) Expect(eventType, name string) Obj {
	e := w.Next(10 * time.Second)
	if e.Type != eventType || name != "" && e.Object.Name() != name {
		w.t.Failf("GET %s: expected event %s of %q, got %s of %q: %s", w.path, eventType, name, e.Type, e.Object.Name(), short(e.Object.String(), 300))
	}
	return e.Object
}

// Synthetic reads n ADDED events in any order and returns their names, sorted.
func (w *Watcher) Synthetic(n int) (names []string) {
	for range n {
		names = append(names, w.Expect("ADDED", "").Name())
	}
	slices.Sort(names)
	return names
}

// Silent fails if an event other than BOOKMARK arrives within d.
func (w *Watcher) Silent(d time.Duration) {
	timeout := time.After(d)
	for {
		select {
		case e, ok := <-w.events:
			if ok && e.Type != "BOOKMARK" {
				w.t.Failf("GET %s: expected no further event, got %s of %q", w.path, e.Type, e.Object.Name())
			}
			if !ok {
				return
			}
		case <-timeout:
			return
		}
	}
}

// Find reads events until one satisfies ok, and returns it.
func (w *Watcher) Find(d time.Duration, expected string, ok func(Event) bool) Event {
	timeout := time.After(d)
	for {
		select {
		case e, open := <-w.events:
			if !open {
				w.t.Failf("GET %s: expected %s, got the end of the stream after %q", w.path, expected, w.seen)
			}
			w.seen = append(w.seen, e.Type+" "+e.Object.Name())
			if ok(e) {
				return e
			}
		case <-timeout:
			w.t.Failf("GET %s: expected %s within %v, got %q", w.path, expected, d, w.seen)
		}
	}
}

// published reports whether a ConfigMap is the one a control plane may publish in
// every namespace (its CA); no check is about it.
func published(name string) bool { return strings.HasSuffix(name, "-root-ca.crt") }

// Rest reads events until the stream ends or d has passed.
func (w *Watcher) Rest(d time.Duration) (rest []Event) {
	timeout := time.After(d)
	for {
		select {
		case e, open := <-w.events:
			if !open {
				return rest
			}
			rest = append(rest, e)
		case <-timeout:
			return rest
		}
	}
}
