// Package strain contains the resource exhaustion trials: they try to use too much memory,
// CPU time, request slots or connections. Each is the regression test of a finding of the
// security review, or of a protection that worked. All load is bounded in number and time.
package strain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rawhttp"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// All returns the trials of this package.
func All() []attack.Trial {
	return slices.Concat(exhaustions(), hostileWebhooks(), weights(), protocols(), floods(), hostile())
}

func exhaustions() []attack.Trial {
	return []attack.Trial{
		{Name: "InventedMethods", Finding: "B1", Run: inventedMethods},
		{Name: "SlowBodies", Finding: "B2", Run: slowBodies},
		{Name: "UnreadStreams", Finding: "B2", Run: unreadStreams},
		{Name: "HeadWatch", Finding: "B7", Run: headWatch},
		{Name: "SlowHeaders", Finding: "D", Run: slowHeaders},
		{Name: "UnreadWatches", Finding: "D", Run: unreadWatches},
	}
}

// maxDelay is the longest time a request of the administrator may take during an attack.
const maxDelay = 8 * time.Second

// inventedMethods sends unknown HTTP methods: they must neither create time series of
// metrics nor stay in memory.
func inventedMethods(ctx context.Context, t *attack.Target) error {
	size := func() (int, error) {
		answer, err := attack.Ask(ctx, t.Root(), cluster.Request{Path: "/metrics"}, http.StatusOK)
		return len(answer.Body), err
	}
	anonymous := t.As("")
	send := func(from, to int) error {
		for i := from; i < to; i++ {
			for _, path := range []string{"/x", "/api/v1/namespaces"} {
				if _, err := anonymous.Send(ctx, fmt.Sprintf("M%dX", i), path, ""); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := send(0, 20); err != nil { // creates the series that are created once
		return err
	}
	before, err := size()
	if err != nil {
		return err
	}
	if err := send(20, attack.Count(t, 500, 5000)); err != nil {
		return err
	}
	for i := range attack.Count(t, 4, 40) {
		long := strings.Repeat("M", 100<<10) + fmt.Sprint(i)
		if _, err := attack.Server(t).Exchange(ctx, rawhttp.Head(long, "/x", "Connection: close")+"\r\n\r\n", 10*time.Second); err != nil {
			return err
		}
	}
	after, err := size()
	if err == nil && after > before+64<<10 {
		err = fmt.Errorf("/metrics grew from %d to %d bytes", before, after)
	}
	return err
}

// slowBodies announces bodies that it never sends, on more connections than the server
// runs writes at the same time.
func slowBodies(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	head := rawhttp.Head(http.MethodPost, "/apis/authorization.platform.io/v1/selfsubjectaccessreviews",
		"Authorization: Bearer "+mallory.Token, "Content-Type: application/json", "Content-Length: 1000")
	if _, err := attack.Server(t).SlowBodies(slow, attack.Count(t, 250, 600), head); err != nil {
		return err
	}
	namespace := ""
	if err := attack.Promptly(ctx, maxDelay, "an administrator's write during slow bodies", func(ctx context.Context) (err error) {
		namespace, err = t.Namespace(ctx)
		return err
	}); err != nil {
		return err
	}
	return attack.Promptly(ctx, maxDelay, "an administrator's second write", func(ctx context.Context) error {
		return t.Root().Create(ctx, attack.ConfigMaps(namespace), attack.ConfigMap("a", ""))
	})
}

// unreadStreams requests large lists on HTTP/2 streams and never reads the responses, on
// more streams than the server runs reads at the same time.
func unreadStreams(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("list", "", "configmaps"))
	if err != nil {
		return err
	}
	for i := range 3 {
		body := attack.ConfigMap(fmt.Sprintf("large-%d", i), `,"data":{"a":"`+strings.Repeat("x", 200<<10)+`"}`)
		if err := t.Root().Create(ctx, attack.ConfigMaps(mallory.Namespace), body); err != nil {
			return err
		}
	}
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	for range 4 {
		conn, err := attack.Server(t).HTTP2(slow, 0)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range 220 {
			if _, err := conn.Get(attack.ConfigMaps(mallory.Namespace), mallory.Token); err != nil {
				break // the server has closed the connection, which is allowed too
			}
		}
	}
	for range 2 {
		if err := attack.Promptly(ctx, maxDelay, "an administrator's read during unread streams", func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), cluster.Request{Path: attack.ConfigMaps("default")}, http.StatusOK)
		}); err != nil {
			return err
		}
	}
	return nil
}

// headWatch sends HEAD requests for watches. They have to end, and the connection has to
// serve the next request.
func headWatch(ctx context.Context, t *attack.Target) error {
	token := "Authorization: Bearer " + t.Admin.Token
	for _, path := range []string{attack.ConfigMaps("default") + "?watch=1", "/api/v1/watch/namespaces/default/configmaps"} {
		sent := rawhttp.Head(http.MethodHead, path, token) + "\r\n\r\n" + rawhttp.Head(http.MethodGet, "/api", token, "Connection: close") + "\r\n\r\n"
		conn, err := attack.Server(t).Dial(ctx, "http/1.1")
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
		if _, err := conn.Write([]byte(sent)); err != nil {
			return err
		}
		var got strings.Builder
		buffer := make([]byte, 32<<10)
		for {
			n, err := conn.Read(buffer)
			got.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		if heads := strings.Count(got.String(), "HTTP/1.1 "); heads < 2 {
			return fmt.Errorf("HEAD %s blocks its connection: %d responses to two requests", path, heads)
		}
	}
	return nil
}

// slowHeaders opens connections whose request headers never end. Other clients are served
// meanwhile, and the connections are closed after the header timeout.
func slowHeaders(ctx context.Context, t *attack.Target) error {
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := attack.Server(t).SlowHeaders(slow, attack.Count(t, 100, 500)); err != nil {
		return err
	}
	if err := attack.Promptly(ctx, maxDelay, "a read during slow headers", func(ctx context.Context) error {
		return attack.Expect(ctx, t.Root(), cluster.Request{Path: "/api"}, http.StatusOK)
	}); err != nil || !t.Large {
		return err
	}
	conn, err := attack.Server(t).Dial(ctx, "http/1.1")
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(40 * time.Second))
	if _, err := conn.Write([]byte("GET /api HTTP/1.1\r\nHost: a\r\nX-Slow: ")); err != nil {
		return err
	}
	buffer := make([]byte, 1024)
	for {
		if _, err := conn.Read(buffer); err != nil {
			var timeout interface{ Timeout() bool }
			if errors.As(err, &timeout) && timeout.Timeout() {
				return errors.New("a connection with endless headers stays open")
			}
			return nil
		}
	}
}

// unreadWatches opens watches and never reads them while many objects change. A watcher
// that reads is served, and the memory stays bounded.
func unreadWatches(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("list,watch", "", "configmaps"))
	if err != nil {
		return err
	}
	from, err := attack.Head(ctx, t, attack.ConfigMaps(mallory.Namespace))
	if err != nil {
		return err
	}
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	for range 2 {
		conn, err := attack.Server(t).HTTP2(slow, 0)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range attack.Count(t, 50, 200) {
			if _, err := conn.Get(attack.ConfigMaps(mallory.Namespace)+"?watch=true", mallory.Token); err != nil {
				break
			}
		}
	}
	err = attack.Modest(t, 600<<20, func() error {
		body := strings.Repeat("x", 100<<10)
		for i := range attack.Count(t, 50, 400) {
			if err := t.Root().Create(ctx, attack.ConfigMaps(mallory.Namespace), attack.ConfigMap(fmt.Sprintf("c%d", i), `,"data":{"a":"`+body+`"}`)); err != nil {
				return err
			}
		}
		return attack.Promptly(ctx, 15*time.Second, "a healthy watcher during unread watches", func(ctx context.Context) error {
			return attack.Sees(ctx, t, mallory.Namespace, from)
		})
	})
	if err != nil {
		return err
	}
	// Objects left over from many rounds would count as memory used by an attack.
	return attack.Expect(ctx, t.Root(), cluster.Request{Method: http.MethodDelete, Path: attack.ConfigMaps(mallory.Namespace)}, http.StatusOK)
}
