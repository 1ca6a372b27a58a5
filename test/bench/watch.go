package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/events"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/test/bench/internal/deletion"
)

const (
	// changers is the number of clients that make the changes, so that a slow response
	// does not delay the next change.
	changers = 16
	// changeLabels is the number of different labels of the changes.
	changeLabels = 50
	// lastRate is the number of changes a second that many watchers get, of which the last one counts. For each slowShare of
	// them another one reads slowly, with crawlPause after each piece: a connection of these gets more than it reads.
	lastRate, slowShare, crawlPause = 1, 10, 50 * time.Millisecond
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
		return m.measure(ctx, func() (load.Samples, error) { return m.perform(ctx, makers, groups, max(c.labels, 1)) })
	}
}

// lastOf measures how late the last of many watchers gets each change, while others that read slowly watch the same.
func lastOf(watchers int) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		makers, err := m.connect(ctx, 1)
		if err != nil {
			return err
		}
		groups, err := load.Watching{Server: m.at(), Path: changes, Watchers: watchers, All: true}.Open(ctx)
		if err != nil {
			return err
		}
		slow, err := m.gather(ctx, watchers/slowShare, 0)
		if err != nil {
			return err
		}
		var crawling sync.WaitGroup
		defer crawling.Wait()
		beside, end := context.WithCancel(ctx)
		defer end()
		for _, g := range slow {
			crawling.Go(func() { g.Crawl(beside, crawlPause) })
		}
		return m.measure(ctx, func() (load.Samples, error) {
			count := max(1, int(greedyTimes*m.settings.duration.Seconds()*lastRate))
			ctx, cancel := context.WithTimeoutCause(ctx, greedyTimes*m.settings.duration+waitTimeout, errors.New("not everything was delivered in time"))
			defer cancel()
			err := load.Each(ctx, len(groups)+1, func(ctx context.Context, i int) error {
				if i == len(groups) {
					return change(ctx, makers, lastRate, count)
				}
				return groups[i].Follow(ctx, count)
			})
			all, resumed := load.Last(groups)
			m.tell(resumed)
			return all, err
		})
	}
}

// idle measures an idle server with a number of watchers, which get nothing. An operation is
// a second.
func idle(watchers int) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		if _, err := m.gather(ctx, watchers, 0); err != nil {
			return err
		}
		return m.measure(ctx, func() (load.Samples, error) {
			return load.Samples{Operations: int(idleTime / time.Second)}, load.Pause(ctx, idleTime)
		})
	}
}

// deletions measures when a deletion reaches a watcher, while others make changes at times the
// rate of the flags.
func deletions(times int) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		l := deletion.Load{Server: m.at(), Path: changes, Rate: times * m.settings.rate, Duration: m.settings.duration}
		return m.measure(ctx, func() (load.Samples, error) { return l.Run(ctx) })
	}
}

// gather opens the watches of n watchers, which select one of the labels each.
func (m *measurement) gather(ctx context.Context, n, labels int) ([]*load.WatchGroup, error) {
	return load.Watching{Server: m.at(), Path: changes, Watchers: n, Labels: labels}.Open(ctx)
}

// perform makes the changes, with labels in turn, and waits until all watchers have seen all
// that they select.
func (m *measurement) perform(ctx context.Context, makers load.Clients, groups []*load.WatchGroup, labels int) (load.Samples, error) {
	seen := max(1, int(m.settings.duration.Seconds()*float64(m.settings.rate))/labels)
	ctx, cancel := context.WithTimeoutCause(ctx, m.settings.duration+waitTimeout, errors.New("not everything was delivered in time"))
	defer cancel()
	err := load.Each(ctx, len(groups)+1, func(ctx context.Context, i int) error {
		if i == len(groups) {
			return change(ctx, makers, m.settings.rate, seen*labels)
		}
		return groups[i].Follow(ctx, seen)
	})
	all, resumed := load.Received(groups)
	m.tell(resumed)
	return all, err
}

// tell reports watches that the server ended.
func (m *measurement) tell(resumed int) {
	if resumed > 0 {
		fmt.Fprintf(os.Stderr, "%-8s ended %d watches, which were resumed\n", m.name, resumed)
	}
}

// change creates ConfigMaps at a rate; each contains its scheduled time.
func change(ctx context.Context, makers load.Clients, rate, count int) error {
	schedule := load.NewSchedule(float64(rate), int64(count))
	return load.Each(ctx, len(makers), func(ctx context.Context, i int) error {
		for {
			n, due, more := schedule.Next(ctx)
			if !more {
				return ctx.Err()
			}
			body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"change-","labels":{"%s":"g%d"}},"data":{%s%d"}}`,
				load.GroupLabel, n%changeLabels, events.Stamp, due.UnixNano())
			if _, err := makers[i].Do(wire.Request{Method: http.MethodPost, Path: changes, Body: body}, nil); err != nil {
				return err
			}
		}
	})
}
