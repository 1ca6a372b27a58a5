package feed

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
)

// Config configures Feeds.
type Config struct {
	Source changes.Source
	// Head returns a revision to start the feed of a type at: at or above every change acknowledged
	// before the call.
	Head func(ctx context.Context, of resource.GroupResource) (int64, error)
	// Bytes bounds the ring of each feed.
	Bytes int
	// Age bounds how long a change stays in the ring.
	Age time.Duration
	// Idle is how long a feed is kept without watchers.
	Idle time.Duration
}

// Feeds holds the feeds of a front door, by resource type. A feed begins with the first watcher of
// its type, and ends when it has had none for some time or its type has ended.
type Feeds struct {
	config Config
	ctx    context.Context

	mu    sync.Mutex
	feeds map[resource.GroupResource]*feed
}

// use is how a feed is used. Feeds.mu guards it.
type use struct {
	watchers int
	idle     *time.Timer // closes the feed; nil while it is watched
	stop     context.CancelFunc
}

// New returns Feeds that follow their resource types until ctx ends.
func New(ctx context.Context, config Config) *Feeds {
	return &Feeds{config: config, ctx: ctx, feeds: map[resource.GroupResource]*feed{}}
}

// Watch returns a watcher that delivers every selected change after selection.After.
// The caller must close it. The error is a *services.Status when the feed cannot be
// started before ctx ends.
func (f *Feeds) Watch(ctx context.Context, selection Selection) (*Watcher, error) {
	one := f.open(selection.GroupResource)
	select {
	case <-one.started:
	case <-one.ended:
		f.release(one)
		return nil, services.Unavailable("changes of %s are not available now", selection.GroupResource)
	case <-ctx.Done():
		f.release(one)
		return nil, services.Unavailable("changes of %s are not available now", selection.GroupResource)
	}
	w := &Watcher{feed: one, selection: selection, position: selection.After, wake: make(chan struct{}, 1), release: func() { f.release(one) }}
	one.index.add(w)
	return w, nil
}

// open returns the feed of a resource type, for one more watcher, and starts it if there is none.
func (f *Feeds) open(gr resource.GroupResource) *feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.feeds[gr]
	if !ok {
		one = newFeed(f.config, gr)
		f.feeds[gr] = one
		var ctx context.Context
		ctx, one.use.stop = context.WithCancel(f.ctx)
		go one.run(ctx)
	}
	one.use.watchers++
	if one.use.idle != nil {
		one.use.idle.Stop()
		one.use.idle = nil
	}
	return one
}

// release is called once for each call of open.
func (f *Feeds) release(one *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.use.watchers--; one.use.watchers > 0 {
		return
	}
	if f.feeds[one.resource] != one { // its type has ended
		one.use.stop()
		return
	}
	one.use.idle = time.AfterFunc(f.config.Idle, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if one.use.watchers == 0 { // it may have got one while this waited
			f.remove(one)
			one.use.stop()
		}
	})
}

// remove makes the next watcher of the type begin another feed. The caller holds f.mu.
func (f *Feeds) remove(one *feed) {
	if f.feeds[one.resource] == one {
		delete(f.feeds, one.resource)
	}
}

// End ends the feed of a type that was served until a revision. Its watchers get the changes through
// there and then ErrEnded. Those of a later type with the same name begin another feed.
func (f *Feeds) End(gr resource.GroupResource, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.feeds[gr]
	if one == nil {
		return
	}
	f.remove(one)
	one.until.Store(max(revision, 1))
	if one.use.watchers == 0 || one.over() {
		one.use.stop()
	}
}

// Bytes returns the approximate size of all rings.
func (f *Feeds) Bytes() (sum int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.feeds {
		sum += one.bytes()
	}
	return sum
}

// Bound limits the sum of all rings further than their own limits, until the next call. Rings
// that are too large shrink within seconds, when the hub next reports its progress.
func (f *Feeds) Bound(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sizes := make([]*feed, 0, len(f.feeds))
	for _, one := range f.feeds {
		sizes = append(sizes, one)
	}
	slices.SortFunc(sizes, func(a, b *feed) int { return cmp.Compare(a.bytes(), b.bytes()) })
	for i, one := range sizes {
		part := min(bytes/int64(len(sizes)-i), int64(f.config.Bytes))
		one.limit.Store(part)
		bytes -= min(one.bytes(), part)
	}
}
