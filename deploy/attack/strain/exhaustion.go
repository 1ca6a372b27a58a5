// Package strain holds the trials that try to take more than one's share: of memory,
// of time, of places, of connections. Each stands for a finding of the security
// review, or for something that held and has to go on holding. All load is bounded in
// count and time.
package strain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/deploy/attack"
	"github.com/portico-platform/portico/deploy/attack/rawhttp"
	"github.com/portico-platform/portico/deploy/e2e/cluster"
)

// All returns the trials of this package.
func All() []attack.Trial {
	return slices.Concat(exhaustions(), hostileWebhooks(), weights(), protocols())
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

// bearable is how long the administrator may wait while somebody else attacks.
const bearable = 8 * time.Second

// inventedMethods sends methods that nobody has heard of: they may not become
// series of metrics, nor stay in memory.
func inventedMethods(ctx context.Context, t *attack.Target) error {
	size := func() (int, error) {
		answer, err := attack.Ask(ctx, t.Root(), cluster.Request{Path: "/metrics"}, http.StatusOK)
		return len(answer.Body), err
	}
	nobody := t.As("")
	send := func(from, to int) error {
		for i := from; i < to; i++ {
			for _, path := range []string{"/x", "/api/v1/namespaces"} {
				if _, err := nobody.Send(ctx, fmt.Sprintf("M%dX", i), path, ""); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := send(0, 20); err != nil { // whatever is a series once for all
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
	if _, err := attack.Server(t).SlowBodies(slow, attack.Count(t, 250, 600), head); err != nil {
		return err
	}
	namespace := ""
	if err := attack.Promptly(ctx, bearable, "an administrator's write beside slow bodies", func(ctx context.Context) (err error) {
		namespace, err = t.Namespace(ctx)
		return err
	}); err != nil {
		return err
	}
	return attack.Promptly(ctx, bearable, "an administrator's second write", func(ctx context.Context) error {
		return t.Root().Create(ctx, attack.ConfigMaps(namespace), attack.ConfigMap("a", ""))
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
				break // the server has had enough: as good
			}
		}
	}
	for range 2 {
		if err := attack.Promptly(ctx, bearable, "an administrator's read beside unread streams", func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), cluster.Request{Path: attack.ConfigMaps("default")}, http.StatusOK)
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
	if _, err := attack.Server(t).SlowHeaders(slow, attack.Count(t, 100, 500)); err != nil {
		return err
	}
	if err := attack.Promptly(ctx, bearable, "a read beside slow headers", func(ctx context.Context) error {
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
		return attack.Promptly(ctx, 15*time.Second, "a healthy watcher beside unread ones", func(ctx context.Context) error {
			return attack.Sees(ctx, t, mallory.Namespace, from)
		})
	})
	if err != nil {
		return err
	}
	// What many rounds leave behind would count as memory that an attack has taken.
	return attack.Expect(ctx, t.Root(), cluster.Request{Method: http.MethodDelete, Path: attack.ConfigMaps(mallory.Namespace)}, http.StatusOK)
}
