package watchhub

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/kit/monotonic"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/history"
	"github.com/portico-platform/portico/watch-hub/internal/keys"
	"github.com/portico-platform/portico/watch-hub/internal/publishing"
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
	// unreadFor is how long the hub waits for a KMS plugin that does not answer.
	unreadFor = 30 * time.Second
	// fillStep is how many revisions of the past are read at a time. etcd sends about
	// as many at once to a watch that lags.
	fillStep = 1_000
	// fillBytes bounds the memory of a step.
	fillBytes = 8 << 20
	// mostTogether bounds the responses of etcd whose changes are published together.
	mostTogether = 32
	// policyGroup is the beginning of the group of roles and bindings, in every vocabulary.
	policyGroup = "rbac.authorization."
	// handovers is how often the processor is given up for a response that has arrived: etcd's
	// client hands it from one goroutine to the next.
	handovers = 2
)

// shared is what all followers of a hub use.
type shared struct {
	config   Config
	keys     *keys.Keys
	election *election
}

// progressOf are the types that the progress of a follower is about, as in services.Progress.
type progressOf struct{ only, except []resource.GroupResource }

// follower follows one etcd cluster: it keeps a window of the changes of the cluster's types,
// publishes them while this hub leads, and compacts the cluster.
type follower struct {
	shared
	name      string // of an override; empty for the cluster of all other types
	etcd      *clientv3.Client
	log       *slog.Logger
	about     progressOf
	again     func() // called when a new epoch begins
	reader    *history.Reader
	keeper    *epoch.Keeper
	window    *window.Window
	publisher *publishing.Publisher
	won       <-chan struct{} // receives after each won election
	ready     chan struct{}
	heard     atomic.Int64 // when etcd last sent anything, as monotonic.Now

	filled           bool                                 // the window holds as much of the past as it can
	unread           map[resource.GroupResource]time.Time // since when changes could not be decrypted
	stuck            int                                  // watches in a row that were ended because they made no progress
	told             time.Time                            // when progress was last published
	policy           bool                                 // a type of policy has changed since
	publishedThrough int64                                // and its revision
	compacted        time.Time                            // when this hub last compacted
	seen             map[int64]time.Time                  // when it first saw each mark, by its revision
	// standby is the progress at the last tick while not publishing.
	standby services.Progress
}

// newFollower returns the follower of a cluster, whose objects of other types are ignored.
func newFollower(s shared, o etcd.Override, about progressOf) *follower {
	log := s.config.Log
	if o.Name != "" {
		log = log.With("etcd", o.Name)
	}
	f := &follower{
		shared: s, name: o.Name, etcd: o.Client, log: log, about: about, again: func() {},
		window: window.New(s.config.History, s.config.WindowBytes), won: s.election.won(),
		ready: make(chan struct{}),
	}
	f.reader = history.NewReader(o.Client, s.config.Values, log)
	f.unread = map[resource.GroupResource]time.Time{}
	f.reader.Await = f.await
	f.reader.Owns = services.Progress{Only: about.only, Except: about.except}.About
	f.keeper = epoch.New(epoch.Config{KV: etcd.Hedged(o.Client), Log: log})
	f.publisher = publishing.New(s.config.Bus, s.keys.Current, log)
	f.publisher.Tracer = s.config.Tracer
	if s.config.Bus != nil && bus.Private(s.config.Bus) {
		f.publisher.Held = func(c services.Change) bool { return f.window.Floor(c.Object.Key.GroupResource) < c.Object.Revision }
	}
	return f
}

// run follows and compacts the cluster until ctx ends.
func (f *follower) run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { f.compactAlways(ctx) })
	f.followAlways(ctx)
}

// Heard returns how long ago etcd last sent anything.
func (f *follower) Heard() time.Duration { return monotonic.Since(f.heard.Load()) }

// progress returns how far the window is.
func (f *follower) progress() services.Progress {
	p := f.window.Progress()
	p.Only, p.Except = f.about.only, f.about.except
	return p
}

// followAlways follows etcd and restarts when that fails.
func (f *follower) followAlways(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.follow(ctx)
		var compacted history.Compacted
		switch {
		case ctx.Err() != nil, errors.Is(err, errNewEpoch):
		case errors.As(err, &compacted):
			// The hub was away for longer than etcd keeps history.
			f.window.Reset(compacted.Through, f.window.Epoch())
		default:
			f.log.Warn("watching etcd failed, retrying", "revision", f.window.Progress().Through, "error", err)
			retry.Pause(ctx, retryEvery)
		}
	}
}

var (
	errWatchEnded = errors.New("etcd ended the watch")
	errNewEpoch   = errors.New("etcd's history was replaced")
)

// follow moves changes from etcd into the window and onto the bus.
func (f *follower) follow(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer end(nil)
	of, err := f.begin(ctx)
	if err != nil {
		return err
	}
	_, after := f.window.Span()
	proven := make(chan int64, 1)
	// Watch returns only when the member has created the watch.
	background.Go(func() { f.prove(ctx, of, prover{proven, end}) })
	responses := f.reader.Follow(ctx, after, progressEvery)
	background.Go(func() { f.fill(ctx) })
	expire := time.NewTicker(progressEvery)
	defer expire.Stop()
	standby := time.NewTicker(standbyEvery)
	defer standby.Stop()
	for {
		select {
		case response, ok := <-responses:
			if err := f.takeAll(ctx, responses, response, ok); err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
		case <-f.publisher.Waited():
			f.publish(time.Now())
		case <-f.publisher.Lost():
			f.publish(time.Now())
		case <-f.won:
			f.tell(time.Now())
		case now := <-expire.C:
			f.window.Expire(now)
		case <-standby.C:
			f.publishStandby()
		case revision, ok := <-proven:
			if !ok {
				return errNewEpoch
			}
			f.confirm(revision)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin makes sure that the window belongs to etcd's current epoch. A new window begins
// at the present: it is ready at once, however long the past.
func (f *follower) begin(ctx context.Context) (epoch.Epoch, error) {
	of, now, err := f.keeper.Read(ctx)
	if err != nil || of == f.window.Epoch() {
		return of, err
	}
	again := f.window.Epoch().ID != ""
	f.heard.Store(monotonic.Now())
	f.window.Reset(now, of)
	f.filled, f.publishedThrough = false, 0
	if again {
		f.again()
		f.tell(time.Now()) // followers then ask, and learn that they have to list again
	} else {
		close(f.ready)
	}
	return of, nil
}

// fill reads the past into the window, newest first, until the window is full or etcd
// has no more. The steps are small because for each of them etcd reads everything that
// happened since, and because objects may be large.
func (f *follower) fill(ctx context.Context) {
	step := int64(fillStep)
	for !f.filled && ctx.Err() == nil {
		floor, _ := f.window.Span()
		first := f.window.Epoch().After
		q := history.Query{After: max(floor-step, first), Through: floor, Limit: 2 * fillStep, Bytes: fillBytes}
		past, err := f.reader.Between(ctx, q)
		var compacted history.Compacted
		for errors.As(err, &compacted) {
			if q.After, f.filled = compacted.Through, true; q.After >= floor {
				return
			}
			past, err = f.reader.Between(ctx, q)
		}
		f.lose(past.Lost)
		switch {
		case errors.Is(err, history.ErrLarge):
			step, f.filled = max(1, step/4), false
		case err != nil:
			if ctx.Err() == nil {
				f.log.Warn("filling the window failed, older changes are read from etcd on demand", "error", err)
			}
			return
		case !f.window.Prepend(time.Now(), q.After, floor, past.Changes) || q.After <= first:
			f.filled = true
		}
	}
}

// takeAll takes a response of etcd, which is not ok at the end of the watch, and those that follow at
// once. Their changes share a message, which has one signature and wakes each follower once.
func (f *follower) takeAll(ctx context.Context, responses clientv3.WatchChan, response clientv3.WatchResponse, ok bool) error {
	defer func() { f.offer(time.Now()) }()
	for taken := 1; ; taken++ {
		switch {
		case !ok:
			return errWatchEnded
		case f.keeper.Broken() != nil: // what follows is of another history
			return errNewEpoch
		case epoch.Marked(response.Events):
			if now, _, err := f.keeper.Read(ctx); err != nil || now != f.window.Epoch() {
				return cmp.Or(err, errNewEpoch)
			}
		}
		run, err := f.reader.Read(response)
		if err != nil {
			if run.Through > 0 {
				f.take(run)
			}
			return err
		}
		f.take(run)
		if taken == mostTogether || f.publisher.Held != nil {
			return nil
		}
		for range handovers {
			runtime.Gosched()
		}
		select {
		case response, ok = <-responses:
		default:
			return nil
		}
	}
}

// offer publishes what is pending if it may be published now. Progress follows a change of policy at once: decisions
// combine roles and bindings, and are as old as the type that is known through the least revision.
func (f *follower) offer(now time.Time) {
	if f.policy {
		f.tell(now)
	} else if f.publisher.Ready(now) {
		f.publish(now)
	}
}

// await reports whether a change that cannot be decrypted at the moment, because a KMS plugin does not answer, is
// awaited. Those of all other types wait as well.
func (f *follower) await(gr resource.GroupResource) bool {
	if f.unread[gr].IsZero() {
		f.unread[gr] = time.Now()
	}
	return time.Since(f.unread[gr]) < unreadFor
}

// lose lets the history of types begin after changes that cannot be decrypted.
func (f *follower) lose(lost []history.Lost) {
	for _, l := range lost {
		f.window.Lose(l.GroupResource, l.Revision)
	}
}

// take adds a run to the window first, so that anyone who follows the bus from now on
// can replay what was published before.
func (f *follower) take(run history.Run) {
	now := time.Now()
	f.heard.Store(monotonic.Now())
	f.lose(run.Lost)
	for _, c := range run.Changes {
		delete(f.unread, c.Object.Key.GroupResource)
	}
	f.window.Append(now, run.Changes)
	f.window.Advance(run.Through)
	f.keeper.Saw(run.Through)
	if !f.election.leads() {
		return
	}
	for _, c := range run.Changes {
		f.publisher.Add(c)
		f.policy = f.policy || strings.HasPrefix(c.Object.Key.Group, policyGroup)
	}
	pause := idleEvery
	if bus.Private(f.config.Bus) {
		pause = privateIdleEvery
	}
	if run.Through > f.publishedThrough {
		// etcd's progress arrives every progressEvery, sometimes a little early.
		pause = progressEvery / 2
	}
	if now.Sub(f.told) >= pause {
		f.tell(now)
	}
}

// publish sends the pending messages. It announces progress if a change fits into no
// message, so that followers fetch it.
func (f *follower) publish(now time.Time) {
	if whole := f.publisher.Flush(now); !whole {
		f.tell(now)
	}
}

// tell publishes the progress, after all changes that it includes.
func (f *follower) tell(now time.Time) {
	f.publisher.Flush(now)
	progress := f.progress()
	f.publisher.Progress(progress)
	f.told, f.publishedThrough, f.policy = now, progress.Through, false
}

// publishStandby publishes the progress of its previous call, if this hub does not publish
// changes. By now the publishing hub has published all of that, so followers do not ask
// for messages in flight.
func (f *follower) publishStandby() {
	if f.election.leads() {
		f.standby = services.Progress{}
		return
	}
	if before := f.standby; before.Epoch != "" && before.Epoch == f.window.Epoch().ID && before.Through > f.publishedThrough {
		f.publisher.Progress(before)
		f.publishedThrough = before.Through
	}
	f.standby = f.progress()
}

// Replay is Hub.Replay.
func (f *follower) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	select {
	case <-f.ready:
	default:
		return services.Replay{}, services.Unavailable("the watch hub is still reading its history")
	}
	if err := f.keeper.Broken(); err != nil {
		return services.Replay{}, services.Unavailable("the watch hub is waiting for a new epoch: %v", err)
	}
	if answer, ok := f.window.Replay(r); ok {
		return answer, nil
	}
	if of := f.window.Epoch(); of.After > 0 && r.After <= of.After {
		return services.Replay{}, services.Expired("too old resource version: %d (the store was restored, its history begins after %d)", r.After, of.After)
	}
	return f.replayPast(ctx, r)
}

// replayPast reads from etcd what precedes the window. There is always more, because
// the rest is in the window.
func (f *follower) replayPast(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	of := f.window.Epoch()
	floor := f.window.Floor(r.GroupResource)
	limit := window.PageChanges
	if r.Limit > 0 {
		limit = min(limit, r.Limit)
	}
	past, err := f.reader.Past(ctx, history.Query{
		GroupResource: r.GroupResource, After: r.After, Through: floor, Limit: limit, Bytes: window.PageBytes,
	})
	var compacted history.Compacted
	if errors.As(err, &compacted) {
		return services.Replay{}, services.Expired("too old resource version: %d (changes are available after %d)", r.After, compacted.Through)
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
