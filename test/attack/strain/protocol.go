package strain

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rawhttp"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func protocols() []attack.Trial {
	return []attack.Trial{
		{Name: "Smuggling", Finding: "D", Run: smuggling},
		{Name: "RapidReset", Finding: "D", Run: rapidReset},
		{Name: "EndlessContinuation", Finding: "D", Run: endlessContinuation},
	}
}

// smuggling hides a second request in the body of a first one: behind a shared proxy it
// would be executed as the next request of another client. A server may answer only the
// requests that exist in every interpretation of the bytes.
func smuggling(ctx context.Context, t *attack.Target) error {
	word, path, err := attack.Secret(ctx, t)
	if err != nil {
		return err
	}
	hidden := rawhttp.Head(http.MethodGet, path, "Authorization: Bearer "+t.Admin.Token) + "\r\n\r\n"
	for i, headers := range [][]string{
		{"Content-Length: 5", fmt.Sprintf("Content-Length: %d", len(hidden))},
		{"Content-Length: +5"},
		{"Content-Length: 0x5"},
		{"Content-Length: -1"},
		{"Content-Length: 5 5"},
		{"Transfer-Encoding: xchunked"},
		{"Transfer-Encoding: identity, chunked"},
		{"Transfer-Encoding: chunked", "Transfer-Encoding: identity"},
		{"Transfer-Encoding : chunked"},
		{"Transfer-Encoding:\x0bchunked"},
		{" Transfer-Encoding: chunked"},
	} {
		sent := rawhttp.Head(http.MethodPost, "/api", headers...) + "\r\n\r\n0\r\n\r\n" + hidden
		answers, err := attack.Server(t).Exchange(ctx, sent, 2*time.Second)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if strings.Contains(a.Body, word) {
				return fmt.Errorf("variant %d: the hidden request is answered", i)
			}
		}
	}
	return nil
}

// rapidReset opens streams and cancels them at once, many times.
func rapidReset(ctx context.Context, t *attack.Target) error {
	return attack.Modest(t, 200<<20, func() error {
		conn, err := attack.Server(t).HTTP2(ctx, 65_535)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range attack.Count(t, 3_000, 100_000) {
			stream, err := conn.Get(attack.ConfigMaps("default"), "")
			if err == nil {
				err = conn.Cancel(stream)
			}
			if err != nil {
				break // the server has closed the connection, which is allowed too
			}
		}
		return attack.Promptly(ctx, maxDelay, "a read during stream resets", func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), cluster.Request{Path: "/api"}, http.StatusOK)
		})
	})
}

// endlessContinuation sends headers that do not end.
func endlessContinuation(ctx context.Context, t *attack.Target) error {
	return attack.Modest(t, 200<<20, func() error {
		conn, err := attack.Server(t).HTTP2(ctx, 65_535)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Continue(20_000); err != nil {
			return nil
		}
		closed, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		_, err = conn.Closed(closed)
		return err
	})
}
