package trials

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/deploy/attack"
	"github.com/portico-platform/portico/deploy/attack/rawhttp"
	"github.com/portico-platform/portico/deploy/e2e/cluster"
)

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

// bearable is how long the administrator may wait while somebody else attacks.
const bearable = 8 * time.Second

// inventedMethods sends methods that nobody has heard of: they may not become
// series of metrics, nor stay in memory.
func inventedMethods(ctx context.Context, t *attack.Target) error {
	size := func() (int, error) {
		answer, err := ask(ctx, t.Root(), cluster.Request{Path: "/metrics"}, http.StatusOK)
		return len(answer.Body), err
	}
	before, err := size()
	if err != nil {
		return err
	}
	nobody := t.As("")
	for i := range count(t, 500, 5000) {
		for _, path := range []string{"/x", "/api/v1/namespaces"} {
			if _, err := nobody.Send(ctx, fmt.Sprintf("M%dX", i), path, ""); err != nil {
				return err
			}
		}
	}
	for i := range count(t, 4, 40) {
		long := strings.Repeat("M", 100<<10) + fmt.Sprint(i)
		if _, err := server(t).Exchange(ctx, rawhttp.Head(long, "/x", "Connection: close")+"\r\n\r\n", 10*time.Second); err != nil {
			return err
		}
	}
	after, err := size()
	if err == nil && after > before+64<<10 {
		err = fmt.Errorf("/metrics grew from %d to %d bytes", before, after)
	}
	return err
}

// slowBodies announces bodies that never come, on more connections than there are
// places for writes.
func slowBodies(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	head := rawhttp.Head(http.MethodPost, "/apis/authorization.platform.io/v1/selfsubjectaccessreviews",
		"Authorization: Bearer "+mallory.Token, "Content-Type: application/json", "Content-Length: 1000")
	if _, err := server(t).SlowBodies(slow, count(t, 250, 600), head); err != nil {
		return err
	}
	namespace := ""
	if err := promptly(ctx, bearable, "an administrator's write beside slow bodies", func(ctx context.Context) (err error) {
		namespace, err = t.Namespace(ctx)
		return err
	}); err != nil {
		return err
	}
	return promptly(ctx, bearable, "an administrator's second write", func(ctx context.Context) error {
		return t.Root().Create(ctx, configMaps(namespace), configMap("a", ""))
	})
}

// unreadStreams asks for large lists on HTTP/2 streams that never take the answer,
// more of them than there are places for reads.
func unreadStreams(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("list", "", "configmaps"))
	if err != nil {
		return err
	}
	for i := range 3 {
		body := configMap(fmt.Sprintf("large-%d", i), `,"data":{"a":"`+strings.Repeat("x", 200<<10)+`"}`)
		if err := t.Root().Create(ctx, configMaps(mallory.Namespace), body); err != nil {
			return err
		}
	}
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	for range 4 {
		conn, err := server(t).HTTP2(slow, 0)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range 220 {
			if _, err := conn.Get(configMaps(mallory.Namespace), mallory.Token); err != nil {
				break // the server has had enough: as good
			}
		}
	}
	for range 2 {
		if err := promptly(ctx, bearable, "an administrator's read beside unread streams", func(ctx context.Context) error {
			return expect(ctx, t.Root(), cluster.Request{Path: configMaps("default")}, http.StatusOK)
		}); err != nil {
			return err
		}
	}
	return nil
}

// headWatch asks for the head of a watch. It has to end, and the connection has to
// serve what comes next on it.
func headWatch(ctx context.Context, t *attack.Target) error {
	token := "Authorization: Bearer " + t.Admin.Token
	for _, path := range []string{configMaps("default") + "?watch=1", "/api/v1/watch/namespaces/default/configmaps"} {
		sent := rawhttp.Head(http.MethodHead, path, token) + "\r\n\r\n" + rawhttp.Head(http.MethodGet, "/api", token, "Connection: close") + "\r\n\r\n"
		conn, err := server(t).Dial(ctx, "http/1.1")
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
			return fmt.Errorf("HEAD %s blocks its connection: %d answers to two requests", path, heads)
		}
	}
	return nil
}

// slowHeaders opens connections whose heads never end. Others are served meanwhile,
// and the connections are closed in time.
func slowHeaders(ctx context.Context, t *attack.Target) error {
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := server(t).SlowHeaders(slow, count(t, 100, 500)); err != nil {
		return err
	}
	if err := promptly(ctx, bearable, "a read beside slow headers", func(ctx context.Context) error {
		return expect(ctx, t.Root(), cluster.Request{Path: "/api"}, http.StatusOK)
	}); err != nil || !t.Large {
		return err
	}
	conn, err := server(t).Dial(ctx, "http/1.1")
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
				return errors.New("a head that never ends keeps its connection")
			}
			return nil
		}
	}
}

// unreadWatches opens watches that nobody reads while much changes. A watcher that
// reads is served, and memory stays bounded.
func unreadWatches(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("list,watch", "", "configmaps"))
	if err != nil {
		return err
	}
	from, err := head(ctx, t, configMaps(mallory.Namespace))
	if err != nil {
		return err
	}
	slow, cancel := context.WithCancel(ctx)
	defer cancel()
	for range 2 {
		conn, err := server(t).HTTP2(slow, 0)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range count(t, 50, 200) {
			if _, err := conn.Get(configMaps(mallory.Namespace)+"?watch=true", mallory.Token); err != nil {
				break
			}
		}
	}
	return modest(t, 600<<20, func() error {
		body := strings.Repeat("x", 100<<10)
		for i := range count(t, 50, 400) {
			if err := t.Root().Create(ctx, configMaps(mallory.Namespace), configMap(fmt.Sprintf("c%d", i), `,"data":{"a":"`+body+`"}`)); err != nil {
				return err
			}
		}
		return promptly(ctx, 15*time.Second, "a healthy watcher beside unread ones", func(ctx context.Context) error {
			return sees(ctx, t, mallory.Namespace, from)
		})
	})
}
