// Package deletion measures how long after the response to a DELETE its event arrives at a
// watcher. A controller that works with a cache acts on an object that it has deleted for
// that long.
package deletion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/events"
	"github.com/portico-platform/portico/internal/load/wire"
)

const (
	// changers is the number of clients that make the changes of others.
	changers = 4
	// timeout bounds the time until the event of a deletion arrives.
	timeout = time.Minute
)

// Load is a client that patches and deletes objects, one after the other, and a watcher of their
// collection on a connection of its own.
type Load struct {
	Server wire.Server
	// Path is that of the collection of ConfigMaps.
	Path string
	// Rate is the number of changes of other objects of the collection per second.
	Rate     int
	Duration time.Duration
}

// name matches the names of deleted objects.
var name = regexp.MustCompile(`\bdeleted-\d+`)

// deleted is the name of the object in a DELETED event, and when the event arrived.
type deleted struct {
	name string
	at   time.Time
}

// Run deletes objects for the duration. An operation is a deletion. Its latency is the time from
// the complete response until the event has arrived; 0 if it had arrived before.
func (l Load) Run(ctx context.Context) (samples load.Samples, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	arrived := make(chan deleted, 16)
	if err := l.watch(ctx, cancel, arrived); err != nil {
		return samples, err
	}
	maker, err := load.Dial(ctx, l.Server)
	if err != nil {
		return samples, err
	}
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel(nil)
	if err := l.disturb(ctx, cancel, &others); err != nil {
		return samples, err
	}
	for goOn := load.During(l.Duration); goOn(); samples.Operations++ {
		late, err := l.once(ctx, maker, fmt.Sprintf("deleted-%d", time.Now().UnixNano()), arrived)
		if err != nil {
			return samples, err
		}
		samples.Latencies = append(samples.Latencies, late)
	}
	return samples, nil
}

// once makes an object, changes it and deletes it at once, as a controller does that removes its
// finalizer first.
func (l Load) once(ctx context.Context, c *wire.Conn, name string, arrived <-chan deleted) (late time.Duration, err error) {
	for _, r := range []wire.Request{
		{Method: http.MethodPost, Path: l.Path, Body: load.ConfigMap(name)},
		{Method: http.MethodPatch, Path: l.Path + "/" + name, Type: "application/merge-patch+json", Body: []byte(`{"data":{"changed":"yes"}}`)},
		{Method: http.MethodDelete, Path: l.Path + "/" + name},
	} {
		if _, err := c.Do(r, nil); err != nil {
			return 0, err
		}
	}
	answered := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("the event of a deletion has not arrived"))
	defer cancel()
	for {
		select {
		case event := <-arrived:
			if event.name == name {
				return max(0, event.at.Sub(answered)), nil
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// watch passes on what a watcher sees of deletions until ctx ends.
func (l Load) watch(ctx context.Context, failed context.CancelCauseFunc, arrived chan<- deleted) error {
	c, err := load.Dial(ctx, l.Server)
	if err != nil {
		return err
	}
	var list []byte
	if _, err := c.Do(wire.Request{Method: http.MethodGet, Path: l.Path + "?limit=1"}, func(piece []byte) { list = append(list, piece...) }); err != nil {
		return err
	}
	var line []byte
	take := func(piece []byte) {
		at := time.Now()
		for {
			end := bytes.IndexByte(piece, '\n')
			if end < 0 {
				line = append(line, piece...)
				return
			}
			if line = append(line, piece[:end]...); bytes.HasPrefix(line, []byte(`{"type":"DELETED"`)) {
				arrived <- deleted{string(name.Find(line)), at}
			}
			line, piece = line[:0], piece[end+1:]
		}
	}
	if err := c.Open(wire.Request{Method: http.MethodGet, Path: l.Path + "?watch=1&resourceVersion=" + events.Version(list)}, take); err != nil {
		return err
	}
	go func() { failed(c.Follow(func() bool { return ctx.Err() == nil })) }()
	return nil
}

// disturb creates other objects at the rate until ctx ends.
func (l Load) disturb(ctx context.Context, failed context.CancelCauseFunc, running *sync.WaitGroup) error {
	if l.Rate == 0 {
		return nil
	}
	all, err := load.Connect(ctx, l.Server, changers)
	if err != nil {
		return err
	}
	schedule := load.NewSchedule(float64(l.Rate), 0)
	for _, c := range all {
		running.Go(func() {
			for {
				if _, _, more := schedule.Next(ctx); !more {
					return
				}
				body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"other-"}}`)
				if _, err := c.Do(wire.Request{Method: http.MethodPost, Path: l.Path, Body: body}, nil); err != nil {
					failed(err)
					return
				}
			}
		})
	}
	return nil
}
