package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/deploy/bench/internal/events"
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
	// changeLabels is the number of different labels of the changes.
	changeLabels = 50
	// idleTime is how long an idle server is measured.
	idleTime = 20 * time.Second
)

// crowd is a number of watchers. Each change has one of several labels, and each watcher
// selects one of them; or every watcher gets every change.
type crowd struct {
	times  int // the number of watchers of the flags
	labels int // 0: no selectors
}

// watch runs many watchers while objects change at a constant rate. An operation is one
// change delivered to one watcher; its latency is measured from the scheduled time of the
// change.
func watch(c crowd) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		makers, err := m.connect(ctx, changers)
		if err != nil {
			return err
		}
		groups, err := m.gather(ctx, c.times*m.settings.watchers, c.labels)
		if err != nil {
			return err
		}
		return m.measure(ctx, func() (figures.Samples, error) { return m.perform(ctx, makers, groups, max(c.labels, 1)) })
	}
}

// idle measures an idle server with a number of watchers, which get nothing. An operation is
// a second.
func idle(watchers int) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		if _, err := m.gather(ctx, watchers, 0); err != nil {
			return err
		}
		return m.measure(ctx, func() (figures.Samples, error) {
			return figures.Samples{Operations: int(idleTime / time.Second)}, pause(ctx, idleTime)
		})
	}
}

// gather opens the watches of n watchers, which select one of the labels each.
func (m *measurement) gather(ctx context.Context, n, labels int) ([]watchGroup, error) {
	list, err := m.get(ctx, changes)
	if err != nil {
		return nil, err
	}
	connections, err := m.connect(ctx, (n+streamsPerConnection-1)/streamsPerConnection)
	if err != nil {
		return nil, err
	}
	groups := make([]watchGroup, len(connections))
	for i := range n {
		r := &groups[i/streamsPerConnection]
		r.conn = connections[i/streamsPerConnection]
		w := &watcher{Reader: events.Reader{Sampled: i%sampled == 0}}
		if labels > 0 {
			w.selector = fmt.Sprintf("&labelSelector=group%%3Dg%d", i%labels)
		}
		if err := r.open(w, events.Version(list)); err != nil {
			return nil, err
		}
		r.watchers = append(r.watchers, w)
	}
	return groups, nil
}

// perform makes the changes, with labels in turn, and waits until all watchers have seen all
// that they select.
func (m *measurement) perform(ctx context.Context, makers clients, groups []watchGroup, labels int) (figures.Samples, error) {
	seen := max(1, int(m.settings.duration.Seconds()*float64(m.settings.rate))/labels)
	ctx, cancel := context.WithTimeoutCause(ctx, m.settings.duration+waitTimeout, errors.New("not everything was delivered in time"))
	defer cancel()
	err := each(ctx, len(groups)+1, func(ctx context.Context, i int) error {
		if i == len(groups) {
			return change(ctx, makers, m.settings.rate, seen*labels)
		}
		stop := context.AfterFunc(ctx, groups[i].conn.Close)
		defer stop()
		return groups[i].follow(seen)
	})
	var all figures.Samples
	resumed := 0
	for _, r := range groups {
		resumed += r.resumed
		for _, w := range r.watchers {
			all.Operations += w.Count
			all.Latencies = append(all.Latencies, w.Latencies...)
			all.Bytes += w.Bytes
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
	path := changes + "?watch=1&resourceVersion=" + version + w.selector
	return r.conn.Open(wire.Request{Method: http.MethodGet, Path: path}, w.Take)
}

// follow reads until every watcher has seen count events. A watch that the server ends, for
// example because the watcher is slow, is resumed.
func (r *watchGroup) follow(count int) error {
	for {
		next := r.behind(count)
		if next == nil {
			return nil
		}
		if next.Ended {
			if bytes.Contains(next.Last, []byte(`"type":"ERROR"`)) || len(next.Last) == 0 {
				return fmt.Errorf("a watch ended with an error: %s", next.Last)
			}
			next.Ended = false
			r.resumed++
			if err := r.open(next, events.Version(next.Last)); err != nil {
				return err
			}
		}
		if err := r.conn.Follow(func() bool { return next.Count < count && !next.Ended }); err != nil {
			return err
		}
	}
}

// behind returns a watcher that has seen fewer than count events, preferably one whose
// watch has ended; nil if there is none.
func (r *watchGroup) behind(count int) (found *watcher) {
	for _, w := range r.watchers {
		if w.Count < count && (found == nil || w.Ended) {
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
			body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"change-","labels":{"group":"g%d"}},"data":{%s%d"}}`, n%changeLabels, events.Stamp, due.UnixNano())
			if _, err := makers[i].Do(wire.Request{Method: http.MethodPost, Path: changes, Body: body}, nil); err != nil {
				return err
			}
		}
	})
}

// watcher is one watch.
type watcher struct {
	events.Reader
	selector string // of the path
}
