package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/internal/servers"
)

// waitTimeout bounds waits: for the start of a target, and for the last changes to its
// watchers.
const waitTimeout = time.Minute

// target is a measured server.
type target struct {
	name, url, token, version string
	server                    *servers.Server // unless it was running before
	pids                      []int
	parts                     []string // the names of the processes, if they are known
	begin                     launch   // nil for a server that was running before
	work                      string   // the folder of its data
	pods                      int      // that are read

	created atomic.Int64    // number of objects with numbered names
	touched int64           // how often touch was called
	listed  map[string]bool // the media types of lists since then
	atRest  int64           // resident memory with the pods, before anything else
}

func newTarget(name, url string, pods int) *target {
	return &target{name: name, url: strings.TrimSuffix(url, "/"), pods: pods, token: servers.AdminToken, listed: map[string]bool{}}
}

func (t *target) stop() {
	if t.server != nil {
		t.server.Stop()
	}
}

// await waits until the target is ready and the namespace default exists, reads the
// version, and creates the namespace for writes.
func (t *target) await(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if err := t.ready(waiting, 100*time.Millisecond); err != nil {
		return err
	}
	body, err := t.get(ctx, "/version")
	if err != nil {
		return err
	}
	var version struct{ GitVersion string }
	if err := json.Unmarshal(body, &version); err != nil {
		return err
	}
	t.version = version.GitVersion
	return t.make(ctx, namespaces, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+written+`"}}`))
}

// ready waits until the target is ready and the namespace default exists.
func (t *target) ready(ctx context.Context, pause time.Duration) error {
	return t.answers(ctx, pause, "/readyz", namespaces+"/default")
}

// at returns what connections of the load lead to.
func (t *target) at() wire.Server { return wire.Unverified(t.url, t.token, "bench") }

// dial opens a connection that is closed when ctx ends.
func (t *target) dial(ctx context.Context) (*wire.Conn, error) { return load.Dial(ctx, t.at()) }

// connect opens a connection per client. They are closed when ctx ends.
func (t *target) connect(ctx context.Context, n int) (load.Clients, error) {
	return load.Connect(ctx, t.at(), n)
}

// once calls a function with a connection of its own.
func (t *target) once(ctx context.Context, do func(*wire.Conn) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := t.dial(ctx)
	if err != nil {
		return err
	}
	return do(c)
}

// get sends one GET.
func (t *target) get(ctx context.Context, path string) (body []byte, err error) {
	err = t.once(ctx, func(c *wire.Conn) (err error) { body, err = read(c, path); return err })
	return body, err
}

// make creates an object unless it exists.
func (t *target) make(ctx context.Context, path string, body []byte) error {
	return t.once(ctx, func(c *wire.Conn) error { return ensure(c, path, body) })
}

// read returns the whole body of a GET.
func read(c *wire.Conn, path string) ([]byte, error) {
	var body []byte
	_, err := c.Do(wire.Request{Method: http.MethodGet, Path: path}, func(piece []byte) { body = append(body, piece...) })
	return body, err
}

// ensure creates an object unless it exists.
func ensure(c *wire.Conn, path string, body []byte) error {
	_, err := c.Do(wire.Request{Method: http.MethodPost, Path: path, Body: body}, nil)
	var answer *wire.StatusError
	if errors.As(err, &answer) && answer.Code == http.StatusConflict {
		return nil
	}
	return err
}
