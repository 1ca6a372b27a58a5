// Package watchhub is the service that answers what happened: it follows etcd,
// publishes every change once on the bus, keeps the recent window in memory,
// answers replays, and compacts etcd's history behind the window.
//
// It decides what history is held and which of several hubs publishes. It never
// changes objects and does not know who watches. It serves "Watch procedure",
// "Events" and "Persistence" of the specification.
package watchhub

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/history"
	"github.com/portico-platform/portico/watch-hub/internal/keys"
	"github.com/portico-platform/portico/watch-hub/internal/window"
)

const (
	// progressEvery is how often the hub looks how far it has come, and tells when
	// that has changed.
	progressEvery = time.Second
	// idleEvery is how often it tells when nothing has changed.
	idleEvery = 3 * time.Second
	// lagging is how long etcd may say nothing before the hub is not healthy.
	lagging = 15 * time.Second
	// retryEvery is the pause before a broken watch is opened again.
	retryEvery = 500 * time.Millisecond
)

// Config is what a Hub needs. All fields are required.
type Config struct {
	Etcd *clientv3.Client
	Bus  *nats.Conn
	// Name tells hubs apart; a hub takes over at once from its predecessor of the
	// same name.
	Name string
	// History is how long changes can be replayed and lists continued.
	History time.Duration
	// WindowBytes bounds the window in memory; older changes come from etcd.
	WindowBytes int64
	// KeyLifetime is how often the key of the bus is replaced.
	KeyLifetime time.Duration
	Log         *slog.Logger
}

// Hub implements services.WatchHub.
type Hub struct {
	config    Config
	reader    *history.Reader
	window    *window.Window
	election  *election
	publisher *publisher
	keys      *keys.Keys
	ready     chan struct{}
	heard     atomic.Int64 // when etcd last said anything, in Unix nanoseconds

	told   time.Time // when progress was last published
	toldOf int64     // and of which revision
}

// New returns a hub that does nothing until it runs.
func New(config Config) *Hub {
	h := &Hub{
		config: config,
		reader: history.NewReader(config.Etcd, config.Log),
		window: window.New(config.History, config.WindowBytes),
		ready:  make(chan struct{}),
	}
	h.election = newElection(config.Etcd, config.Name, config.Log)
	h.keys = keys.New(config.Etcd, config.KeyLifetime, config.Log)
	h.publisher = newPublisher(config.Bus, h.keys.Current, config.Log)
	return h
}

// Ready is closed when the window holds everything that happened before the
// start, as far as etcd has it.
func (h *Hub) Ready() <-chan struct{} { return h.ready }

// Heard returns how long ago etcd last said anything.
func (h *Hub) Heard() time.Duration { return time.Since(time.Unix(0, h.heard.Load())) }

// Run does the work of the hub until ctx ends, and then returns nil.
func (h *Hub) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { h.followAlways(ctx) })
	loops.Go(func() { h.compactAlways(ctx) })
	loops.Go(func() { h.keys.Run(ctx) })
	loops.Go(func() {
		// Until then it has nothing to publish, or nothing to seal it with.
		for _, ready := range []<-chan struct{}{h.ready, h.keys.Ready()} {
			select {
			case <-ready:
			case <-ctx.Done():
				return
			}
		}
		h.election.run(ctx)
	})
	loops.Wait()
	return nil
}

// followAlways follows etcd, and again when that breaks.
func (h *Hub) followAlways(ctx context.Context) {
	for ctx.Err() == nil {
		_, after := h.window.Span()
		err := h.follow(ctx, after)
		var compacted history.Compacted
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &compacted):
			// At the start this is how the hub learns where history begins.
			h.window.Reset(compacted.Through)
		default:
			h.config.Log.Warn("following etcd again", "after", after, "error", err)
			pause(ctx, retryEvery)
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

var errWatchEnded = errors.New("etcd ended the watch")

// follow takes changes from etcd into the window and onto the bus.
func (h *Hub) follow(ctx context.Context, after int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start, err := h.reader.Revision(ctx)
	if err != nil {
		return err
	}
	responses := h.reader.Watch(ctx, resource.Root, after, progressEvery)
	expire := time.NewTicker(progressEvery)
	defer expire.Stop()
	for {
		select {
		case response, ok := <-responses:
			if !ok {
				return errWatchEnded
			}
			run, err := h.reader.Read(response)
			if err != nil {
				return err
			}
			h.take(run)
			h.readyAt(start, run.Through)
		case <-h.publisher.due():
			h.publish()
		case <-h.election.won():
			h.tell(time.Now())
		case now := <-expire.C:
			h.window.Expire(now)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take puts a run into the window first, so that whoever follows the bus from
// now on finds there what was published before.
func (h *Hub) take(run history.Run) {
	now := time.Now()
	h.heard.Store(now.UnixNano())
	h.window.Append(now, run.Changes)
	h.window.Advance(run.Through)
	if !h.election.leads() {
		return
	}
	for _, c := range run.Changes {
		h.publisher.add(c)
	}
	if h.publisher.ready(now) {
		h.publish()
	}
	pause := idleEvery
	if run.Through > h.toldOf {
		// Reports come from etcd every progressEvery, some a little early.
		pause = progressEvery / 2
	}
	if now.Sub(h.told) >= pause {
		h.tell(now)
	}
}

// publish sends what is waiting. What no message can hold is announced, so that
// followers fetch it.
func (h *Hub) publish() {
	if whole := h.publisher.flush(); !whole {
		h.tell(time.Now())
	}
}

// tell publishes the progress, after everything that is part of it.
func (h *Hub) tell(now time.Time) {
	h.publisher.flush()
	progress := h.window.Progress()
	h.publisher.progress(progress)
	h.told, h.toldOf = now, progress.Through
}

// readyAt opens the hub for questions once it has seen what was there at its start.
func (h *Hub) readyAt(start, through int64) {
	select {
	case <-h.ready:
	default:
		if through >= start {
			close(h.ready)
		}
	}
}

// Replay implements services.WatchHub.
func (h *Hub) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	select {
	case <-h.ready:
	default:
		return services.Replay{}, services.Unavailable("the watch hub is still reading its history")
	}
	if answer, ok := h.window.Replay(r); ok {
		return answer, nil
	}
	return h.replayPast(ctx, r)
}

// replayPast answers from etcd what lies before the window; the rest of the way
// is in the window, so there is always more.
func (h *Hub) replayPast(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	floor, _ := h.window.Span()
	limit := window.PageChanges
	if r.Limit > 0 {
		limit = min(limit, r.Limit)
	}
	past, err := h.reader.Past(ctx, history.Query{
		GroupResource: r.GroupResource, After: r.After, Through: floor, Limit: limit, Bytes: window.PageBytes,
	})
	var compacted history.Compacted
	if errors.As(err, &compacted) {
		return services.Replay{}, services.Expired("too old resource version: %d (changes are held after %d)", r.After, compacted.Through)
	}
	if err != nil {
		return services.Replay{}, services.Unavailable("reading history: %v", err)
	}
	previous := r.After
	for i := range past.Changes {
		past.Changes[i].Previous = previous
		previous = past.Changes[i].Object.Revision
	}
	return services.Replay{Changes: past.Changes, Through: past.Through, More: true}, nil
}

var _ services.WatchHub = (*Hub)(nil)
