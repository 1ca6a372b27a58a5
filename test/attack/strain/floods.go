package strain

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rawhttp"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func floods() []attack.Trial {
	return []attack.Trial{
		{Name: "FrameFloods", Finding: "E", Run: frameFloods},
		{Name: "IncompleteHandshakes", Finding: "E", Run: incompleteHandshakes},
		{Name: "EndlessLines", Finding: "E", Run: endlessLines},
	}
}

// flood is a frame that a client may send without end. The stream is open, and has no body yet.
type flood struct {
	name string
	send func(f *http2.Framer, stream uint32, i int) error
}

var allFloods = []flood{
	{"pings", func(f *http2.Framer, _ uint32, _ int) error { return f.WritePing(false, [8]byte{1}) }},
	{"settings", func(f *http2.Framer, _ uint32, _ int) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65_535})
	}},
	{"sizes of the header table", func(f *http2.Framer, _ uint32, i int) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(4096 + i%2)})
	}},
	{"priorities of idle streams", func(f *http2.Framer, _ uint32, i int) error {
		return f.WritePriority(uint32(1001+2*i), http2.PriorityParam{StreamDep: 1, Weight: 3})
	}},
	{"windows of one byte", func(f *http2.Framer, stream uint32, i int) error { return f.WriteWindowUpdate(stream*uint32(i%2), 1) }},
	{"empty data", func(f *http2.Framer, stream uint32, _ int) error { return f.WriteData(stream, false, nil) }},
	{"padding", func(f *http2.Framer, stream uint32, _ int) error {
		return f.WriteDataPadded(stream, false, nil, make([]byte, 255))
	}},
	{"unknown frames", func(f *http2.Framer, _ uint32, _ int) error { return f.WriteRawFrame(0xfa, 0, 0, nil) }},
	{"resets of one stream", func(f *http2.Framer, stream uint32, _ int) error {
		return f.WriteRSTStream(stream, http2.ErrCodeCancel)
	}},
}

// frameFloods sends frames that cost their sender next to nothing, each kind on several connections
// without credentials. The server may close them.
func frameFloods(ctx context.Context, t *attack.Target) error {
	return attack.Modest(t, 300<<20, func() error {
		for _, kind := range allFloods {
			for range 3 {
				if err := kind.run(ctx, t); err != nil {
					return fmt.Errorf("%s: %w", kind.name, err)
				}
			}
			if err := attack.Promptly(ctx, maxDelay, "a read during a flood of "+kind.name, func(ctx context.Context) error {
				return attack.Expect(ctx, t.Root(), cluster.Request{Path: "/api"}, http.StatusOK)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// run sends the frames on one connection.
func (k flood) run(ctx context.Context, t *attack.Target) error {
	conn, err := attack.Server(t).HTTP2(ctx, 65_535)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.Open("/api/v1/namespaces")
	if err != nil {
		return err
	}
	for i := range attack.Count(t, 20_000, 500_000) {
		if err := conn.Send(func(f *http2.Framer) error { return k.send(f, stream, i) }); err != nil {
			return nil // the server has closed the connection, which is allowed too
		}
	}
	return nil
}

// incompleteHandshakes begins TLS handshakes that do not end. They do not keep others out, and not for long.
func incompleteHandshakes(ctx context.Context, t *attack.Target) error {
	return attack.Modest(t, 100<<20, func() error {
		closed, err := attack.Server(t).IncompleteHandshakes(ctx, attack.Count(t, 200, 2000))
		if err != nil {
			return err
		}
		if err := attack.Promptly(ctx, maxDelay, "a read during incomplete handshakes", func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), cluster.Request{Path: "/api"}, http.StatusOK)
		}); err != nil {
			return err
		}
		return attack.Promptly(ctx, 30*time.Second, "the end of incomplete handshakes", closed)
	})
}

// endlessLines sends requests over HTTP/1.1 whose chunk extensions, trailers or header lines do not
// end, and requests whose answers nobody waits for.
func endlessLines(ctx context.Context, t *attack.Target) error {
	chunked := rawhttp.Head(http.MethodPost, "/api/v1/namespaces", "Transfer-Encoding: chunked") + "\r\n\r\n"
	return attack.Modest(t, 200<<20, func() error {
		for name, sent := range map[string]string{
			"a chunk extension": chunked + "1;" + strings.Repeat("a", 32<<20),
			"chunk extensions":  chunked + strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\nx\r\n", 32<<10),
			"trailers":          chunked + "0\r\n" + strings.Repeat("A: b\r\n", 4<<20),
			"header lines":      rawhttp.Head(http.MethodGet, "/api") + "\r\n" + strings.Repeat("A: b\r\n", 4<<20),
			"requests":          strings.Repeat(rawhttp.Head(http.MethodGet, "/api")+"\r\n\r\n", 2000),
			"expectations": strings.Repeat(rawhttp.Head(http.MethodPost, "/api/v1/namespaces", "Expect: 100-continue", "Content-Length: 1")+
				"\r\n\r\nx", 2000),
		} {
			answers, err := attack.Server(t).Exchange(ctx, sent, 2*time.Second)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, a := range answers {
				if a.Code < 400 && a.Code != http.StatusContinue {
					return fmt.Errorf("%s: answered with %d", name, a.Code)
				}
			}
		}
		return attack.Expect(ctx, t.Root(), cluster.Request{Path: "/api"}, http.StatusOK)
	})
}
