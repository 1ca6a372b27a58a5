package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// scenario is one thing to measure.
type scenario struct {
	name string
	once bool // it cannot be repeated
	run  func(ctx context.Context, t *target, s *settings) (samples, error)
}

func scenarios() []scenario {
	return append([]scenario{
		{"create pods", true, create},
		{"get a pod", false, get},
		{"list all pods", false, list},
		{"changes to watchers", false, watch},
	}, writeScenarios()...)
}

const pods = "/api/v1/namespaces/default/pods"

// pod is a pod of about 2.5 KiB, as a controller would make it.
func pod(i int) []byte {
	env := make([]string, 24)
	for j := range env {
		env[j] = fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%d-%d-of-a-usual-length"}`, j, i, j)
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-%06d","labels":{"app":"web-%d","tier":"front"},
		"annotations":{"example.com/owner":"team-%d"}},"spec":{"nodeName":"node-%d","automountServiceAccountToken":false,
		"containers":[{"name":"main","image":"registry.example.com/web:1.2.3","ports":[{"containerPort":8080,"protocol":"TCP"}],
		"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"env":[%s]}]}}`, i, i%50, i%7, i%100, strings.Join(env, ","))
}

// many has clients take operations until next says that there are no more, and
// notes how long each took.
func many(clients int, next func() bool, operation func() error) (samples, error) {
	var group sync.WaitGroup
	var lock sync.Mutex
	var all samples
	var failure error
	for range clients {
		group.Go(func() {
			var own []time.Duration
			var err error
			for err == nil && next() {
				began := time.Now()
				err = operation()
				own = append(own, time.Since(began))
			}
			lock.Lock()
			defer lock.Unlock()
			all.latencies = append(all.latencies, own...)
			if failure == nil {
				failure = err
			}
		})
	}
	group.Wait()
	all.operations = len(all.latencies)
	return all, failure
}

// during returns a next for many that ends after some time.
func during(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().Before(end) }
}

func create(ctx context.Context, t *target, s *settings) (samples, error) {
	var left, name atomic.Int64
	left.Store(int64(s.pods))
	return many(s.clients, func() bool { return left.Add(-1) >= 0 }, func() error {
		_, err := t.do(ctx, http.MethodPost, pods, pod(int(name.Add(1)-1)))
		return err
	})
}

func get(ctx context.Context, t *target, s *settings) (samples, error) {
	return many(s.clients, during(s.duration), func() error {
		_, err := t.do(ctx, http.MethodGet, fmt.Sprintf("%s/pod-%06d", pods, rand.IntN(s.pods)), nil)
		return err
	})
}

// list reads all pods as a whole, one list after the other.
func list(ctx context.Context, t *target, s *settings) (samples, error) {
	return many(1, during(s.duration), func() error {
		response, err := t.send(ctx, t.client, http.MethodGet, pods, nil)
		if err != nil {
			return err
		}
		return drain(response)
	})
}
