package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/deploy/bench/internal/figures"
	"github.com/portico-platform/portico/deploy/bench/internal/wire"
)

const (
	// streamsPerConnection is how many watchers share a connection.
	streamsPerConnection = 100
	// One in sampled watchers measures latency.
	sampled = 50
	// changers is the number of clients that make the changes, so that a slow response
	// does not delay the next change.
	changers = 16
	stamp    = `"sent":"`
)

// watch runs many watchers while objects change at a constant rate. An operation is one
// change delivered to one watcher; its latency is measured from the scheduled time of the
// change.
func watch(ctx context.Context, m *measurement) error {
	list, err := m.get(ctx, changes)
	if err != nil {
		return err
	}
	makers, err := m.connect(ctx, changers)
	if err != nil {
		return err
	}
	connections, err := m.connect(ctx, (m.settings.watchers+streamsPerConnection-1)/streamsPerConnection)
	if err != nil {
		return err
	}
	groups := make([]watchGroup, len(connections))
	for i := range m.settings.watchers {
		r := &groups[i/streamsPerConnection]
		r.conn = connections[i/streamsPerConnection]
		w := &watcher{sampled: i%sampled == 0}
		if err := r.open(w, version(list)); err != nil {
			return err
		}
		r.watchers = append(r.watchers, w)
	}
	return m.measure(ctx, func() (figures.Samples, error) { return m.perform(ctx, makers, groups) })
}

// perform makes the changes and waits until all watchers have seen all of them.
func (m *measurement) perform(ctx context.Context, makers clients, groups []watchGroup) (figures.Samples, error) {
	count := int(m.settings.duration.Seconds() * float64(m.settings.rate))
	ctx, cancel := context.WithTimeoutCause(ctx, m.settings.duration+waitTimeout, errors.New("not everything was delivered in time"))
	defer cancel()
	err := each(ctx, len(groups)+1, func(ctx context.Context, i int) error {
		if i == len(groups) {
			return change(ctx, makers, m.settings.rate, count)
		}
		stop := context.AfterFunc(ctx, groups[i].conn.Close)
		defer stop()
		return groups[i].follow(count)
	})
	var all figures.Samples
	resumed := 0
	for _, r := range groups {
		resumed += r.resumed
		for _, w := range r.watchers {
			all.Operations += w.events
			all.Latencies = append(all.Latencies, w.latencies...)
			all.Bytes += w.bytes
		}
	}
	if resumed > 0 {
		fmt.Fprintf(os.Stderr, "%-8s ended %d watches, which were resumed\n", m.name, resumed)
	}
	return all, err
}

// watchGroup holds the watchers that share a connection.
type watchGroup struct {
	conn     *wire.Conn
	watchers []*watcher
	resumed  int
}

func (r *watchGroup) open(w *watcher, version string) error {
	path := changes + "?watch=1&resourceVersion=" + version
	return r.conn.Open(wire.Request{Method: http.MethodGet, Path: path}, w.take)
}

// follow reads until every watcher has seen count events. A watch that the server ends, for
// example because the watcher is slow, is resumed.
func (r *watchGroup) follow(count int) error {
	for {
		next := r.behind(count)
		if next == nil {
			return nil
		}
		if next.ended {
			if bytes.Contains(next.last, []byte(`"type":"ERROR"`)) || len(next.last) == 0 {
				return fmt.Errorf("a watch ended with an error: %s", next.last)
			}
			next.ended = false
			r.resumed++
			if err := r.open(next, version(next.last)); err != nil {
				return err
			}
		}
		if err := r.conn.Follow(func() bool { return next.events < count && !next.ended }); err != nil {
			return err
		}
	}
}

// behind returns a watcher that has seen fewer than count events, preferably one whose
// watch has ended; nil if there is none.
func (r *watchGroup) behind(count int) (found *watcher) {
	for _, w := range r.watchers {
		if w.events < count && (found == nil || w.ended) {
			found = w
		}
	}
	return found
}

// change creates ConfigMaps at a rate; each contains its scheduled time.
func change(ctx context.Context, makers clients, rate, count int) error {
	began := time.Now()
	var turn atomic.Int64
	return each(ctx, len(makers), func(ctx context.Context, i int) error {
		for {
			n := turn.Add(1)
			if n > int64(count) {
				return nil
			}
			due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
			if err := pause(ctx, time.Until(due)); err != nil {
				return err
			}
			body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"change-"},"data":{%s%d"}}`, stamp, due.UnixNano())
			if _, err := makers[i].Do(wire.Request{Method: http.MethodPost, Path: changes, Body: body}, nil); err != nil {
				return err
			}
		}
	})
}

// watcher counts the events of one watch, which are lines. Only some measure latency,
// because parsing all events would measure the client.
type watcher struct {
	sampled   bool
	ended     bool
	events    int
	bytes     int64
	latencies []time.Duration
	last      []byte // complete line
	line      []byte // received part of the next line
}

func (w *watcher) take(piece []byte) {
	if piece == nil {
		w.ended = true
		w.line = w.line[:0]
		return
	}
	w.bytes += int64(len(piece))
	now := time.Now()
	for {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			w.line = append(w.line, piece...)
			return
		}
		w.line, w.last = w.last[:0], append(w.line, piece[:end]...)
		w.events++
		if sent, ok := w.sentAt(); ok {
			w.latencies = append(w.latencies, now.Sub(sent))
		}
		piece = piece[end+1:]
	}
}

// sentAt returns the scheduled time in the last event, if the watcher is sampled.
func (w *watcher) sentAt() (time.Time, bool) {
	if !w.sampled {
		return time.Time{}, false
	}
	_, after, found := bytes.Cut(w.last, []byte(stamp))
	digits, _, ended := bytes.Cut(after, []byte{'"'})
	sent, err := strconv.ParseInt(string(digits), 10, 64)
	return time.Unix(0, sent), found && ended && err == nil
}
