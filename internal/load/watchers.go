package load

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/internal/load/events"
	"github.com/portico-platform/portico/internal/load/wire"
)

const (
	// streamsPerConnection is how many watchers share a connection.
	streamsPerConnection = 100
	// One in sampled watchers measures latency, and the first ones of the first labels.
	sampled = 50
	// GroupLabel is the label of objects that watchers select by: its values are g0, g1 and so on.
	GroupLabel = "group"
)

// Watching is a number of watchers of one collection.
type Watching struct {
	Server wire.Server
	// Path is that of the collection.
	Path     string
	Watchers int
	// Labels is the number of values of GroupLabel, of which each watcher selects one. With 0,
	// every watcher receives every change.
	Labels int
	// All watchers measure latency, and not a sample of them.
	All bool
	// Reconnect keeps the watchers going when a connection is lost.
	Reconnect bool
	// Record receives the sampled latencies, if it is set, instead of Received. It is called
	// concurrently.
	Record func(time.Duration)
}

// Watcher is one watch.
type Watcher struct {
	events.Reader
	selector string // of the path
}

// WatchGroup holds the watchers that share a connection.
type WatchGroup struct {
	watching Watching
	conn     *wire.Conn
	Watchers []*Watcher
	// Resumed is how many watches the server ended, which were opened again.
	Resumed int
	ended   bool   // a watch has ended
	version string // at which the watches were opened
}

// Open opens the watches, which begin at the newest state. They are closed when ctx ends.
func (w Watching) Open(ctx context.Context) ([]*WatchGroup, error) {
	groups := make([]*WatchGroup, (w.Watchers+streamsPerConnection-1)/streamsPerConnection)
	for i := range groups {
		groups[i] = &WatchGroup{watching: w}
	}
	for i := range w.Watchers {
		x := &Watcher{Reader: events.Reader{Sampled: w.All || i%sampled == 0 || i < min(w.Labels, sampled), Record: w.Record}}
		if w.Labels > 0 {
			x.selector = fmt.Sprintf("&labelSelector=%s%%3Dg%d", GroupLabel, i%w.Labels)
		}
		g := groups[i/streamsPerConnection]
		g.Watchers = append(g.Watchers, x)
	}
	for _, g := range groups {
		if err := g.connect(ctx); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// connect opens a connection and all watches of the group, at the newest state.
func (g *WatchGroup) connect(ctx context.Context) (err error) {
	if g.conn, err = Dial(ctx, g.watching.Server); err != nil {
		return err
	}
	var list []byte
	if _, err := g.conn.Do(wire.Request{Method: http.MethodGet, Path: g.watching.Path + "?limit=1"}, func(piece []byte) { list = append(list, piece...) }); err != nil {
		return err
	}
	g.version = events.Version(list)
	for _, w := range g.Watchers {
		w.Ended, w.Last = false, nil
		if err := g.open(w, g.version); err != nil {
			return err
		}
	}
	return nil
}

func (g *WatchGroup) open(w *Watcher, version string) error {
	return g.conn.Open(wire.Request{Method: http.MethodGet, Path: g.watching.Path + "?watch=1&resourceVersion=" + version + w.selector}, func(piece []byte) {
		w.Take(piece)
		g.ended = g.ended || piece == nil
	})
}

// Follow reads until every watcher has received count events; with a negative count until ctx ends. A
// watch that the server ends, for example because the watcher is slow, is resumed.
func (g *WatchGroup) Follow(ctx context.Context, count int) error {
	for {
		stop := context.AfterFunc(ctx, g.conn.Close)
		err := g.follow(count)
		stop()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !g.watching.Reconnect:
			return err
		}
		if err := g.reconnect(ctx); err != nil {
			return err
		}
	}
}

// Crawl reads as over a network that is too slow, with a pause after each piece, until ctx or the connection ends.
func (g *WatchGroup) Crawl(ctx context.Context, pause time.Duration) {
	stop := context.AfterFunc(ctx, g.conn.Close)
	defer stop()
	_ = g.conn.Follow(func() bool { return Pause(ctx, pause) == nil })
}

// reconnect tries until the watches are open again, or ctx ends.
func (g *WatchGroup) reconnect(ctx context.Context) error {
	g.conn.Close()
	for {
		if err := Pause(ctx, ReconnectPause); err != nil {
			return context.Cause(ctx)
		}
		if err := g.connect(ctx); err == nil {
			g.Resumed += len(g.Watchers)
			return nil
		}
	}
}

// ReconnectPause is the time before a lost connection is opened again.
const ReconnectPause = 200 * time.Millisecond

func (g *WatchGroup) follow(count int) error {
	for {
		next := g.behind(count)
		if next == nil {
			return nil
		}
		if next.Ended {
			if bytes.Contains(next.Last, []byte(`"type":"ERROR"`)) {
				return fmt.Errorf("a watch ended with an error: %s", strings.TrimSpace(string(next.Last)))
			}
			next.Ended = false
			g.Resumed++
			if err := g.open(next, cmp.Or(events.Version(next.Last), g.version)); err != nil {
				return err
			}
			continue
		}
		g.ended = false
		if err := g.conn.Follow(func() bool { return (count < 0 || next.Count < count) && !g.ended }); err != nil {
			return err
		}
	}
}

// behind returns a watcher that has received fewer than count events, preferably one whose
// watch has ended; nil if there is none.
func (g *WatchGroup) behind(count int) (found *Watcher) {
	for _, w := range g.Watchers {
		if (count < 0 || w.Count < count) && (found == nil || w.Ended) {
			found = w
		}
	}
	return found
}

// Received returns what the watchers of all groups have received, and how many watches were
// resumed. An operation is an event.
func Received(groups []*WatchGroup) (all Samples, resumed int) {
	for _, g := range groups {
		resumed += g.Resumed
		for _, w := range g.Watchers {
			all.Operations += w.Count
			all.Latencies = append(all.Latencies, w.Latencies...)
			all.Bytes += w.Bytes
		}
	}
	return all, resumed
}

// Last returns how late the last watcher received each change. All watchers have measured the same changes, in the same
// order; those that one has not received do not count. An operation is an event. It also returns how many watches were resumed.
func Last(groups []*WatchGroup) (all Samples, resumed int) {
	all, resumed = Received(groups)
	last := all.Latencies[:0:0]
	for i := 0; ; i++ {
		var latest time.Duration
		for _, g := range groups {
			for _, w := range g.Watchers {
				if i >= len(w.Latencies) {
					all.Latencies = last
					return all, resumed
				}
				latest = max(latest, w.Latencies[i])
			}
		}
		last = append(last, latest)
	}
}
