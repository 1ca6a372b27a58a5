package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/test/bench/internal/process"
)

// fillers is the number of clients that create the pods.
const fillers = 16

func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }

// fill creates the pods that are read.
func (t *target) fill(ctx context.Context) error {
	return t.everyPod(ctx, func(c *wire.Conn, i int) error { return ensure(c, pods, load.Pod(podName(i), i)) })
}

// touch changes every pod, so that no encoding of an earlier list is cached.
func (t *target) touch(ctx context.Context) error {
	t.touched++
	clear(t.listed)
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, t.touched)
	return t.everyPod(ctx, func(c *wire.Conn, i int) error {
		_, err := c.Do(wire.Request{Method: http.MethodPatch, Path: pods + "/" + podName(i), Type: mergePatchType, Body: body}, nil)
		return err
	})
}

// everyPod prepares a measurement: requests that a busy machine makes unavailable are repeated.
func (t *target) everyPod(ctx context.Context, do func(c *wire.Conn, i int) error) error {
	return load.Each(ctx, fillers, func(ctx context.Context, filler int) error {
		c, err := t.dial(ctx)
		for i := filler; i < t.pods && err == nil; i += fillers {
			for err = do(c, i); unavailable(err) && load.Pause(ctx, time.Second) == nil; {
				err = do(c, i)
			}
		}
		return err
	})
}

// unavailable reports whether a server did nothing, so that the request can be repeated.
func unavailable(err error) bool {
	var answer *wire.StatusError
	return errors.As(err, &answer) && answer.Code == http.StatusServiceUnavailable
}

// recordIdleMemory records the memory of the targets after an idle period, in which they can
// release the memory used by the creation of the pods.
func recordIdleMemory(ctx context.Context, s *settings, targets []*target) error {
	if err := load.Pause(ctx, s.idlePeriod); err != nil {
		return err
	}
	for _, t := range targets {
		if err := t.quiet(ctx); err != nil {
			return err
		}
		t.atRest = process.Resident(t.pids...)
	}
	return nil
}

// rest reports the memory that was recorded before all other measurements.
func rest(ctx context.Context, m *measurement) error {
	err := m.measure(ctx, func() (load.Samples, error) { return load.Samples{}, nil })
	m.result.Memory = m.atRest
	return err
}

// lists lists all pods with several concurrent clients, once each.
func lists(clients int, accept string) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		return m.list(ctx, clients, func() func() bool { return load.Times(clients) }, accept)
	}
}

// firstList lists all pods in a media type that was not requested since they changed.
func firstList(accept string) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		if m.listed[accept] {
			if err := m.touch(ctx); err != nil {
				return err
			}
		}
		return m.list(ctx, 1, func() func() bool { return load.Times(1) }, accept)
	}
}

// repeatedList lists all pods repeatedly, in a media type that was requested before.
func repeatedList(accept string) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		if !m.listed[accept] {
			if err := m.list(ctx, 1, func() func() bool { return load.Times(1) }, accept); err != nil {
				return err
			}
		}
		return m.list(ctx, 1, func() func() bool { return load.During(m.settings.duration) }, accept)
	}
}

// minPodBytes is the minimum size of a pod in any media type, to detect truncated lists.
const minPodBytes = 200

func (m *measurement) list(ctx context.Context, n int, next func() func() bool, accept string) error {
	all, err := m.connect(ctx, n)
	if err != nil {
		return err
	}
	m.listed[accept] = true
	return m.measure(ctx, func() (load.Samples, error) {
		return all.Run(ctx, next(), func(_ int, c *wire.Conn) (int64, error) {
			size, err := c.Do(wire.Request{Method: http.MethodGet, Path: pods, Accept: accept}, nil)
			if err == nil && size < int64(m.pods)*minPodBytes {
				err = fmt.Errorf("a list of only %d bytes", size)
			}
			return size, err
		})
	})
}

// nextChunk finds the token of the next chunk in the metadata of a list.
var nextChunk = regexp.MustCompile(`"continue":"([^"]+)"`)

// chunks reads all pods in chunks, with a limit on the objects of each, as kubectl does.
func chunks(limit int) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		all, err := m.connect(ctx, 1)
		if err != nil {
			return err
		}
		return m.measure(ctx, func() (load.Samples, error) {
			return all.Run(ctx, load.During(m.settings.duration), func(_ int, c *wire.Conn) (size int64, err error) {
				for token, n := "", 0; err == nil && (n == 0 || token != ""); n++ {
					if n > (m.pods+limit-1)/limit {
						return size, fmt.Errorf("%d pods are not read by %d chunks of %d", m.pods, n, limit)
					}
					var first []byte
					var read int64
					path := fmt.Sprintf("%s?limit=%d&continue=%s", pods, limit, url.QueryEscape(token))
					read, err = c.Do(wire.Request{Method: http.MethodGet, Path: path}, func(piece []byte) {
						first = append(first, piece[:min(len(piece), max(0, maxListHead-len(first)))]...)
					})
					size += read
					token = ""
					if found := nextChunk.FindSubmatch(first); found != nil {
						token = string(found[1])
					}
				}
				if err == nil && size < int64(m.pods)*minPodBytes {
					err = fmt.Errorf("all chunks have only %d bytes", size)
				}
				return size, err
			})
		})
	}
}

// maxListHead bounds what precedes the first object of a list.
const maxListHead = 2 << 10

// get reads pods by name.
func get(clients int) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		all, err := m.connect(ctx, clients)
		if err != nil {
			return err
		}
		paths := make([]string, m.pods)
		for i := range paths {
			paths[i] = pods + "/" + podName(i)
		}
		return m.measure(ctx, func() (load.Samples, error) {
			return all.Run(ctx, load.During(m.settings.duration), func(_ int, c *wire.Conn) (int64, error) {
				return c.Do(wire.Request{Method: http.MethodGet, Path: paths[rand.IntN(len(paths))]}, nil)
			})
		})
	}
}

// The two ways to start a watch with the existing objects.
const (
	plainWatch   = "?watch=1"
	streamedList = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)

// watchStart opens watches and reads the initial events of all pods.
func watchStart(query string) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		return m.measure(ctx, func() (load.Samples, error) {
			var all load.Samples
			for next := load.During(m.settings.duration); next(); {
				took, size, err := m.startWatch(ctx, query)
				if err != nil {
					return all, err
				}
				all.Latencies = append(all.Latencies, took)
				all.Bytes += size
			}
			all.Operations = len(all.Latencies)
			return all, nil
		})
	}
}

// startWatch opens one watch on its own connection, which is closed to end the watch.
func (m *measurement) startWatch(ctx context.Context, query string) (took time.Duration, size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	c, err := m.dial(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	events, want := 0, m.pods
	var last []byte
	if query == streamedList {
		want++ // the bookmark
	}
	err = c.Open(wire.Request{Method: http.MethodGet, Path: pods + query}, func(piece []byte) {
		events += bytes.Count(piece, []byte{'\n'})
		size += int64(len(piece))
		if want-events <= 1 {
			last = append(last, piece...)
		}
	})
	if err != nil {
		return 0, 0, err
	}
	if err := c.Follow(func() bool { return events < want }); err != nil { // also when the watch ends
		return 0, 0, fmt.Errorf("after %d of %d events: %w", events, want, err)
	}
	if query == streamedList && !bytes.Contains(last, []byte("initial-events-end")) {
		return 0, 0, errors.New("the initial events do not end with their bookmark")
	}
	return time.Since(began), size, nil
}
