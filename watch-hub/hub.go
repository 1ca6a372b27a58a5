// Package watchhub is the service that publishes changes: it follows etcd, publishes
// every change once on the bus, keeps a window of recent changes in memory, answers
// replays, and compacts etcd's history behind the window.
//
// It decides what history is kept and which of several hubs publishes. It never changes
// objects and does not know who watches. It serves "Watch procedure", "Events" and
// "Persistence" of the specification.
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
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/history"
	"github.com/portico-platform/portico/watch-hub/internal/keys"
	"github.com/portico-platform/portico/watch-hub/internal/window"
)

const (
	// progressEvery is the interval at which the hub publishes its progress, if it has
	// changed.
	progressEvery = time.Second
	// idleEvery is the interval at which unchanged progress is published.
	idleEvery = 3 * time.Second
	// privateIdleEvery is that interval on a bus of this process, which loses a message only
	// if the follower is overrun. Each report wakes all followers.
	privateIdleEvery = 15 * time.Second
	// standbyEvery is the interval at which a hub that does not publish changes
	// publishes its progress of the time before. When the publishing hub is dead or
	// frozen, or does not receive what etcd sends, followers notice after twice this time
	// that they miss something.
	standbyEvery = 500 * time.Millisecond
	// lagging is how long etcd may be silent before the hub is unhealthy.
	lagging = 15 * time.Second
	// retryEvery is the pause before a broken watch is reopened.
	retryEvery = 500 * time.Millisecond
	// fillStep is how many revisions of the past are read at a time. etcd sends about
	// as many at once to a watch that lags.
	fillStep = 1_000
	// fillBytes bounds the memory of a step.
	fillBytes = 8 << 20
)

// Config configures a Hub. All fields but Values, CompactEvery and Tracer are required.
type Config struct {
	Etcd *clientv3.Client
	// Values decrypts objects; nil if they are not encrypted.
	Values *atrest.Values
	Bus    *nats.Conn
	// Name identifies the hub. It takes over at once from a predecessor of the same
	// name.
	Name string
	// History is how long changes can be replayed and lists continued.
	History time.Duration
	// CompactEvery is the minimum time between compactions of etcd; 0 for as often as there
	// are marks, which is marksPerHistory times per History. Less than 0 is never.
	CompactEvery time.Duration
	// WindowBytes bounds the window in memory; older changes come from etcd.
	WindowBytes int64
	// KeyLifetime is how often the key of the bus is replaced.
	KeyLifetime time.Duration
	Log         *slog.Logger
	// Tracer continues the traces of writes; nil for none.
	Tracer *tracing.Tracer
}

// Hub implements services.WatchHub.
type Hub struct {
	config    Config
	reader    *history.Reader
	keeper    *epoch.Keeper
	window    *window.Window
	beats     *heartbeats
	election  *election
	publisher *publisher
	keys      *keys.Keys
	ready     chan struct{}
	heard     atomic.Int64 // when etcd last sent anything, in Unix nanoseconds

	filled           bool      // the window holds as much of the past as it can
	told             time.Time // when progress was last published
	publishedThrough int64     // and its revision
	compacted        time.Time // when this hub last compacted
	// standby is the progress at the last tick while not publishing.
	standby services.Progress
}

// New returns a hub. It does nothing until it runs.
func New(config Config) *Hub {
	h := &Hub{
		config: config,
		reader: history.NewReader(config.Etcd, config.Values, config.Log),
		window: window.New(config.History, config.WindowBytes),
		ready:  make(chan struct{}),
	}
	h.keeper = epoch.New(epoch.Config{KV: config.Etcd, Log: config.Log})
	h.keys = keys.New(config.Etcd, config.KeyLifetime, config.Log)
	h.beats = newHeartbeats(config.Bus, h.keys.Current, config.Log)
	h.election = newElection(config.Etcd, h.beats, config.Name, config.Log)
	h.publisher = newPublisher(config.Bus, h.keys.Current, config.Log)
	h.publisher.tracer = config.Tracer
	return h
}

// Ready returns a channel that is closed when the hub knows the present. Changes before
// its start are replayed from etcd until the window has been filled with them.
func (h *Hub) Ready() <-chan struct{} { return h.ready }

// Heard returns how long ago etcd last sent anything.
func (h *Hub) Heard() time.Duration { return time.Since(time.Unix(0, h.heard.Load())) }

// Run runs the hub until ctx ends, and then returns nil.
func (h *Hub) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { h.followAlways(ctx) })
	loops.Go(func() { h.compactAlways(ctx) })
	loops.Go(func() { h.keys.Run(ctx) })
	loops.Go(func() { h.beats.exchange(ctx) })
	loops.Go(func() {
		// Without these it has nothing to publish, or no key to seal it with.
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

// followAlways follows etcd and restarts when that fails.
func (h *Hub) followAlways(ctx context.Context) {
	for ctx.Err() == nil {
		err := h.follow(ctx)
		var compacted history.Compacted
		switch {
		case ctx.Err() != nil, errors.Is(err, errNewEpoch):
		case errors.As(err, &compacted):
			// The hub was away for longer than etcd keeps history.
			h.window.Reset(compacted.Through, h.window.Epoch())
		default:
			h.config.Log.Warn("watching etcd failed, retrying", "revision", h.window.Progress().Through, "error", err)
			retry.Pause(ctx, retryEvery)
		}
	}
}

var (
	errWatchEnded = errors.New("etcd ended the watch")
	errNewEpoch   = errors.New("etcd's history was replaced")
)

// follow moves changes from etcd into the window and onto the bus.
func (h *Hub) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	of, err := h.begin(ctx)
	if err != nil {
		return err
	}
	_, after := h.window.Span()
	responses := h.reader.Watch(ctx, resource.Root, after, progressEvery)
	over := make(chan struct{})
	background.Go(func() { h.prove(ctx, of, over) })
	background.Go(func() { h.fill(ctx) })
	expire := time.NewTicker(progressEvery)
	defer expire.Stop()
	standby := time.NewTicker(standbyEvery)
	defer standby.Stop()
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
		case <-h.publisher.waited():
			h.publish(time.Now())
		case <-h.election.won():
			h.tell(time.Now())
		case now := <-expire.C:
			h.window.Expire(now)
		case <-standby.C:
			h.publishStandby()
		case <-over:
			return errNewEpoch
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin makes sure that the window belongs to etcd's current epoch. A new window begins
// at the present: it is ready at once, however long the past.
func (h *Hub) begin(ctx context.Context) (epoch.Epoch, error) {
	of, now, err := h.keeper.Read(ctx)
	if err != nil || of == h.window.Epoch() {
		return of, err
	}
	again := h.window.Epoch().ID != ""
	h.heard.Store(time.Now().UnixNano())
	h.window.Reset(now, of)
	h.filled, h.publishedThrough = false, 0
	if again {
		h.election.again()
		h.tell(time.Now()) // followers then ask, and learn that they have to list again
	} else {
		close(h.ready)
	}
	return of, nil
}

// prove reads the epoch periodically and closes over when it has changed.
func (h *Hub) prove(ctx context.Context, of epoch.Epoch, over chan<- struct{}) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			// The watch breaks too if etcd does not respond.
			if now, _, err := h.keeper.Read(ctx); err == nil && now != of {
				close(over)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// fill reads the past into the window, newest first, until the window is full or etcd
// has no more. The steps are small because for each of them etcd reads everything that
// happened since, and because objects may be large.
func (h *Hub) fill(ctx context.Context) {
	step := int64(fillStep)
	for !h.filled && ctx.Err() == nil {
		floor, _ := h.window.Span()
		first := h.window.Epoch().After
		q := history.Query{After: max(floor-step, first), Through: floor, Limit: 2 * fillStep, Bytes: fillBytes}
		past, err := h.reader.Between(ctx, q)
		var compacted history.Compacted
		for errors.As(err, &compacted) {
			if q.After, h.filled = compacted.Through, true; q.After >= floor {
				return
			}
			past, err = h.reader.Between(ctx, q)
		}
		switch {
		case errors.Is(err, history.ErrLarge):
			step, h.filled = max(1, step/4), false
		case err != nil:
			if ctx.Err() == nil {
				h.config.Log.Warn("filling the window failed, older changes are read from etcd on demand", "error", err)
			}
			return
		case !h.window.Prepend(time.Now(), q.After, floor, past.Changes) || q.After <= first:
			h.filled = true
		}
	}
}

// take adds a run to the window first, so that anyone who follows the bus from now on
// can replay what was published before.
func (h *Hub) take(run history.Run) {
	now := time.Now()
	h.heard.Store(now.UnixNano())
	h.window.Append(now, run.Changes)
	h.window.Advance(run.Through)
	h.keeper.Saw(run.Through)
	if !h.election.leads() {
		return
	}
	for _, c := range run.Changes {
		h.publisher.add(c)
	}
	if h.publisher.ready(now) {
		h.publish(now)
	}
	pause := idleEvery
	if bus.Private(h.config.Bus) {
		pause = privateIdleEvery
	}
	if run.Through > h.publishedThrough {
		// etcd's progress arrives every progressEvery, sometimes a little early.
		pause = progressEvery / 2
	}
	if now.Sub(h.told) >= pause {
		h.tell(now)
	}
}

// publish sends the pending messages. It announces progress if a change fits into no
// message, so that followers fetch it.
func (h *Hub) publish(now time.Time) {
	if whole := h.publisher.flush(now); !whole {
		h.tell(now)
	}
}

// tell publishes the progress, after all changes that it includes.
func (h *Hub) tell(now time.Time) {
	h.publisher.flush(now)
	progress := h.window.Progress()
	h.publisher.progress(progress)
	h.told, h.publishedThrough = now, progress.Through
}

// publishStandby publishes the progress of its previous call, if this hub does not publish
// changes. By now the publishing hub has published all of that, so followers do not ask
// for messages in flight.
func (h *Hub) publishStandby() {
	if h.election.leads() {
		h.standby = services.Progress{}
		return
	}
	if before := h.standby; before.Epoch != "" && before.Epoch == h.window.Epoch().ID && before.Through > h.publishedThrough {
		h.publisher.progress(before)
		h.publishedThrough = before.Through
	}
	h.standby = h.window.Progress()
}

// Replay implements services.WatchHub.
func (h *Hub) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	select {
	case <-h.ready:
	default:
		return services.Replay{}, services.Unavailable("the watch hub is still reading its history")
	}
	if err := h.keeper.Broken(); err != nil {
		return services.Replay{}, services.Unavailable("the watch hub waits for a new epoch: %v", err)
	}
	if answer, ok := h.window.Replay(r); ok {
		return answer, nil
	}
	if of := h.window.Epoch(); of.After > 0 && r.After <= of.After {
		return services.Replay{}, services.Expired("too old resource version: %d (the store was restored, its history begins after %d)", r.After, of.After)
	}
	return h.replayPast(ctx, r)
}

// replayPast reads from etcd what precedes the window. There is always more, because
// the rest is in the window.
func (h *Hub) replayPast(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	of := h.window.Epoch()
	floor := h.window.Floor(r.GroupResource)
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
	return services.Replay{Changes: past.Changes, Through: past.Through, More: true, Epoch: of.ID}, nil
}

var _ services.WatchHub = (*Hub)(nil)
