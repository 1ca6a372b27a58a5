package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// greedyConnections is the number of connections of the user who requests too much, and greedyTimes how many
	// times longer than others a measurement beside that user takes: it has few operations.
	greedyConnections, greedyTimes = 500, 4
	// refusedPause is the pause of a client that was refused, as the header Retry-After demands.
	refusedPause = time.Second
)

// as returns what connections of a user lead to.
func (t *target) as(user string) wire.Server {
	fields := []hpack.HeaderField{{Name: "authorization", Value: "Bearer " + t.token}, {Name: "user-agent", Value: user}, {Name: "impersonate-user", Value: user}}
	return wire.Server{URL: t.url, TLS: &tls.Config{InsecureSkipVerify: true}, Header: func() ([]hpack.HeaderField, error) { return fields, nil }}
}

// permitted lets a user do everything that an administrator may, without being one.
func (t *target) permitted(ctx context.Context, user string) error {
	group := vocabulary.K8s().Group("rbac.authorization.")
	return t.make(ctx, "/apis/"+group+"/v1/clusterrolebindings", fmt.Appendf(nil, `{"apiVersion":"%[2]s/v1","kind":"ClusterRoleBinding",`+
		`"metadata":{"name":"bench-%[1]s"},"roleRef":{"apiGroup":"%[2]s","kind":"ClusterRole","name":"cluster-admin"},`+
		`"subjects":[{"apiGroup":"%[2]s","kind":"User","name":"%[1]s"}]}`, user, group))
}

// greed is what a user requests on all connections at the same time.
type greed func(m *measurement, n int) wire.Request

func listPods(*measurement, int) wire.Request {
	return wire.Request{Method: http.MethodGet, Path: pods}
}

func createMaps(m *measurement, _ int) wire.Request {
	return wire.Request{Method: http.MethodPost, Path: writtenMaps, Body: load.ConfigMap(fmt.Sprintf("greedy-%d", m.created.Add(1)))}
}

// conflict replaces one object at a revision that it no longer has.
func conflict(*measurement, int) wire.Request {
	return wire.Request{Method: http.MethodPut, Path: writtenMaps + "/own-0",
		Body: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"own-0","resourceVersion":"1"},"data":{"a":"b"}}`)}
}

// besideGreed measures the gets of one client, each until it is answered, while another user uses many connections.
func besideGreed(of greed, connections int, administrator bool) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) (err error) {
		for _, user := range []string{"greedy", "modest"} {
			if err := m.permitted(ctx, user); err != nil {
				return err
			}
		}
		if err := m.once(ctx, func(c *wire.Conn) error { return ensure(c, writtenMaps, load.ConfigMap("own-0")) }); err != nil {
			return err
		}
		greedy, err := load.Connect(ctx, m.as("greedy"), connections)
		if err != nil {
			return err
		}
		server := m.as("modest")
		if administrator {
			server = m.at()
		}
		modest, err := load.Connect(ctx, server, 1)
		if err != nil {
			return err
		}
		var all sync.WaitGroup
		defer all.Wait()
		ctx, end := context.WithCancel(ctx)
		defer end()
		return m.measure(ctx, func() (load.Samples, error) {
			var errorsOfServer atomic.Int64
			for i, c := range greedy {
				all.Go(func() { insist(ctx, c, func() wire.Request { return of(m, i) }, &errorsOfServer) })
			}
			if err := load.Pause(ctx, time.Second); err != nil {
				return load.Samples{}, err
			}
			var refused int
			samples, err := modest.Run(ctx, load.During(greedyTimes*m.settings.duration), func(_ int, c *wire.Conn) (int64, error) {
				for {
					n, err := c.Do(wire.Request{Method: http.MethodGet, Path: pods + "/" + podName(0)}, nil)
					var answer *wire.StatusError
					if !errors.As(err, &answer) || answer.Code < 429 {
						return n, err
					}
					refused++
					if err := load.Pause(ctx, 100*time.Millisecond); err != nil {
						return 0, err
					}
				}
			})
			if refused > 0 || errorsOfServer.Load() > 0 {
				fmt.Printf("%s: the modest client was refused %d times, the greedy one got %d responses with 5xx\n", m.name, refused, errorsOfServer.Load())
			}
			end()
			for _, c := range greedy {
				c.Close()
			}
			return samples, err
		})
	}
}

// insist sends requests until ctx ends, and pauses when one is refused.
func insist(ctx context.Context, c *wire.Conn, next func() wire.Request, failed *atomic.Int64) {
	for ctx.Err() == nil {
		_, err := c.Do(next(), nil)
		var answer *wire.StatusError
		switch {
		case err == nil:
		case !errors.As(err, &answer):
			return // the connection has ended
		case answer.Code == http.StatusTooManyRequests:
			_ = load.Pause(ctx, refusedPause)
		case answer.Code >= http.StatusInternalServerError:
			failed.Add(1)
		}
	}
}
