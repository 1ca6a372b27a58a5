package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/deploy/bench/internal/figures"
	"github.com/portico-platform/portico/deploy/bench/internal/wire"
)

const (
	// streamsPerConnection is how many watchers share a connection.
	streamsPerConnection = 100
	// sampled is which part of the watchers measures latency.
	sampled = 50
	// changers is how many clients make the changes, so that a slow answer does
	// not hold up the next change.
	changers = 16
	stamp    = `"sent":"`
)

// watch has many watchers follow changes that come at a steady rate. An operation
// is one change delivered to one watcher; its latency counts from when the change
// was due.
func watch(ctx context.Context, m *measurement) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, err := m.get(ctx, changes)
	if err != nil {
		return err
	}
	path := changes + "?watch=1&resourceVersion=" + version(list)
	rooms, err := m.connect(ctx, (m.settings.watchers+streamsPerConnection-1)/streamsPerConnection)
	if err != nil {
		return err
	}
	makers, err := m.connect(ctx, changers)
	if err != nil {
		return err
	}
	audience := make([][]*watcher, len(rooms))
	for i := range m.settings.watchers {
		room, w := i/streamsPerConnection, &watcher{sampled: i%sampled == 0}
		if err := rooms[room].Open(wire.Request{Method: http.MethodGet, Path: path}, w.take); err != nil {
			return err
		}
		audience[room] = append(audience[room], w)
	}
	return m.measure(ctx, func() (figures.Samples, error) { return m.perform(ctx, makers, rooms, audience) })
}

// perform makes the changes while all watchers follow, until they have seen all.
func (m *measurement) perform(ctx context.Context, makers, rooms clients, audience [][]*watcher) (figures.Samples, error) {
	count := int(m.settings.duration.Seconds() * float64(m.settings.rate))
	ctx, cancel := context.WithTimeoutCause(ctx, m.settings.duration+patience, errors.New("not everything was delivered in time"))
	defer cancel()
	err := each(ctx, len(rooms)+1, func(ctx context.Context, i int) error {
		if i == len(rooms) {
			return change(ctx, makers, m.settings.rate, count)
		}
		stop := context.AfterFunc(ctx, rooms[i].Close)
		defer stop()
		return rooms[i].Follow(func() bool { return missing(audience[i], count) })
	})
	var all figures.Samples
	for _, room := range audience {
		for _, w := range room {
			all.Operations += w.events
			all.Latencies = append(all.Latencies, w.latencies...)
			all.Bytes += w.bytes
		}
	}
	return all, err
}

// missing tells whether a watcher has not seen everything.
func missing(room []*watcher, count int) bool {
	for _, w := range room {
		if w.events < count {
			return true
		}
	}
	return false
}

// change makes new config maps at a rate; each carries the time when it was due.
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

// watcher counts the events of one watch, which are lines. Some also look when
// each was sent; all to do so would measure the client.
type watcher struct {
	sampled   bool
	events    int
	bytes     int64
	latencies []time.Duration
	line      []byte // so much of it as has come
}

func (w *watcher) take(piece []byte) {
	w.bytes += int64(len(piece))
	w.events += bytes.Count(piece, []byte{'\n'})
	if !w.sampled {
		return
	}
	now := time.Now()
	w.line = append(w.line, piece...)
	for {
		line, rest, whole := bytes.Cut(w.line, []byte{'\n'})
		if !whole {
			return
		}
		if sent, ok := sentAt(line); ok {
			w.latencies = append(w.latencies, now.Sub(sent))
		}
		w.line = append(w.line[:0], rest...)
	}
}

func sentAt(line []byte) (time.Time, bool) {
	_, after, found := bytes.Cut(line, []byte(stamp))
	digits, _, ended := bytes.Cut(after, []byte{'"'})
	sent, err := strconv.ParseInt(string(digits), 10, 64)
	return time.Unix(0, sent), found && ended && err == nil
}
