package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	// streamsPerConnection is how many watchers share a connection.
	streamsPerConnection = 100
	// sampled is which part of the watchers measures latency: to decode every
	// event would measure the client.
	sampled = 50
)

// watch has many watchers follow changes that come at a steady rate. An operation
// is one change delivered to one watcher; its latency counts from when the change
// was sent.
func watch(ctx context.Context, t *target, s *settings) (samples, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	version, err := currentVersion(ctx, t)
	if err != nil {
		return samples{}, err
	}
	changes := int(s.duration.Seconds() * float64(s.rate))
	a := &audience{expected: int64(changes * s.watchers), complete: make(chan struct{}), failed: make(chan error, 1)}
	clients := make([]*http.Client, (s.watchers+streamsPerConnection-1)/streamsPerConnection)
	for i := range clients {
		clients[i] = newClient()
		defer clients[i].CloseIdleConnections()
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel() // before the wait
	for i := range s.watchers {
		path := configMaps + "?watch=1&resourceVersion=" + version
		response, err := t.send(ctx, clients[i/streamsPerConnection], http.MethodGet, path, nil)
		if err != nil {
			return samples{}, err
		}
		group.Go(func() { a.follow(ctx, response, i%sampled == 0) })
	}
	if err := change(ctx, t, s.rate, changes); err != nil {
		return samples{}, err
	}
	select {
	case <-a.complete:
		return a.samples(), nil
	case err := <-a.failed:
		return samples{}, err
	case <-time.After(patience):
		return samples{}, fmt.Errorf("only %d of %d deliveries within %v", a.delivered.Load(), a.expected, patience)
	case <-ctx.Done():
		return samples{}, ctx.Err()
	}
}

func currentVersion(ctx context.Context, t *target) (string, error) {
	body, err := t.do(ctx, http.MethodGet, configMaps, nil)
	if err != nil {
		return "", err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.Unmarshal(body, &list)
	return list.Metadata.ResourceVersion, err
}

// change makes new config maps at a rate; each carries the time it was sent.
func change(ctx context.Context, t *target, rate, changes int) error {
	ticks := time.NewTicker(time.Second / time.Duration(rate))
	defer ticks.Stop()
	for range changes {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
		body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"change-"},"data":{"sent":"%d"}}`, time.Now().UnixNano())
		if _, err := t.do(ctx, http.MethodPost, configMaps, body); err != nil {
			return err
		}
	}
	return nil
}

// audience is all watchers of one run.
type audience struct {
	expected  int64
	delivered atomic.Int64
	complete  chan struct{}
	failed    chan error
	lock      sync.Mutex
	latencies []time.Duration
}

// follow reads one watch until its end.
func (a *audience) follow(ctx context.Context, response *http.Response, sample bool) {
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 16<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			if ctx.Err() == nil && a.delivered.Load() < a.expected {
				select {
				case a.failed <- fmt.Errorf("a watch ended early: %w", err):
				default:
				}
			}
			return
		}
		if sample {
			a.note(line)
		}
		if a.delivered.Add(1) == a.expected {
			close(a.complete)
		}
	}
}

func (a *audience) note(line []byte) {
	var event struct {
		Object struct{ Data struct{ Sent string } }
	}
	if json.Unmarshal(line, &event) != nil {
		return
	}
	sent, err := strconv.ParseInt(event.Object.Data.Sent, 10, 64)
	if err != nil {
		return
	}
	took := time.Since(time.Unix(0, sent))
	a.lock.Lock()
	defer a.lock.Unlock()
	a.latencies = append(a.latencies, took)
}

func (a *audience) samples() samples {
	a.lock.Lock()
	defer a.lock.Unlock()
	return samples{operations: int(a.delivered.Load()), latencies: a.latencies}
}
