package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/object"
)

const (
	// A range request of a load is limited to as many objects as have pageBytes if they are as
	// large as those of the page before, between leastPage and mostPage: for each page etcd
	// visits the keys of all objects that follow, so that many pages take quadratic time.
	leastPage, mostPage = 500, 10_000
	pageBytes           = 16 << 20
	// The delay between attempts doubles while they keep failing.
	retryDelay    = 10 * time.Millisecond
	maxRetryDelay = 5 * time.Second
	// Events arrive immediately, so a read that waits longer than progressDelay waits for
	// a revision without a change of an object, and requires a progress notification. etcd
	// sends it only when the watch has no pending events, so the request is repeated with
	// increasing delays.
	progressDelay    = time.Millisecond
	maxProgressDelay = 100 * time.Millisecond
	// quietProgress is the interval of progress requests without events, so that the
	// mirror's revision is not compacted.
	quietProgress = 30 * time.Second
	// proveEvery is how often the mirror checks that etcd has not been restored.
	proveEvery = time.Second
)

// Run loads the mirror and follows etcd until ctx ends. Errors are logged and retried; in
// the meantime only reads of newer revisions are affected.
func (m *Mirror) Run(ctx context.Context) error {
	ctx = clientv3.WithRequireLeader(ctx)
	var proving sync.WaitGroup
	defer proving.Wait()
	proving.Go(func() { m.checkEpochAlways(ctx) })
	proving.Go(func() { m.contact.Run(ctx) })
	proving.Go(func() { m.readAgainAlways(ctx) })
	loaded, delays := false, retry.NewBackoff(retryDelay, maxRetryDelay)
	for ctx.Err() == nil {
		before, void := m.reached()
		var err error
		if loaded && !void {
			err = m.watch(ctx, before+1)
		} else {
			err = m.load(ctx)
		}
		now, void := m.reached()
		switch {
		case err == nil:
			loaded = true
		case errors.Is(err, rpctypes.ErrCompacted):
			m.log.Warn("etcd has compacted past the mirror, reloading everything")
			loaded = false
		case loaded && void:
			loaded = false // history has broken, which has been logged
		case ctx.Err() == nil:
			m.log.Warn("watching etcd failed, retrying", "error", err)
			if now > before {
				delays.Reset()
			}
			delays.Pause(ctx)
		}
	}
	return nil
}

// checkEpochAlways reads etcd's revision periodically, so that a restored etcd is detected
// without requests. The contact's request cannot do this: starting a new epoch takes
// longer than patience.
func (m *Mirror) checkEpochAlways(ctx context.Context) {
	ticker := time.NewTicker(proveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			// The contact reports errors.
			_, _ = m.Latest(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// load reads all objects at one revision and then replaces the current state.
func (m *Mirror) load(ctx context.Context) error {
	of, now, err := m.keeper.Read(ctx)
	if err != nil {
		return fmt.Errorf("reading the epoch: %w", err)
	}
	m.enter(of, now)
	end := clientv3.GetPrefixRangeEnd(resource.Root)
	tree := new(objects)
	from, revision, limit := resource.Root, int64(0), int64(leastPage)
	for {
		page, err := m.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(revision))
		if err != nil {
			return fmt.Errorf("loading all objects: %w", err)
		}
		if revision == 0 {
			revision = page.Header.Revision
		}
		bytes := 0
		for _, kv := range page.Kvs {
			bytes += len(kv.Value)
			if c := m.changeOf(kv); c.object != nil {
				tree.Set(c.path, c.object)
			}
		}
		limit = nextPage(len(page.Kvs), bytes)
		if !page.More {
			m.reset(tree, revision, of)
			return nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// nextPage returns the limit of the page after one of objects with values of so many
// bytes.
func nextPage(objects, bytes int) int64 {
	return int64(min(max(leastPage, objects*pageBytes/max(bytes, 1)), mostPage))
}

// changeOf decodes a value of etcd. One that cannot be read is logged, and is object.Unreadable: it is not
// absent. What is stored under a path that is not that of an object is ignored.
func (m *Mirror) changeOf(kv *mvccpb.KeyValue) change {
	path := string(kv.Key)
	o, err := m.codec.Decode(path, kv.Value, kv.ModRevision)
	switch {
	case err != nil:
		m.log.Error("a key in etcd is not that of an object", "key", path, "revision", kv.ModRevision, "error", err)
		return change{path: path, revision: kv.ModRevision}
	case object.Unreadable(&o):
		m.log.Error("an object in etcd cannot be read", "object", o.Key.String(), "key", path, "revision", kv.ModRevision, "reason", o.Unreadable)
	}
	return change{path, kv.ModRevision, &o}
}

// watch applies etcd's changes, starting at a revision, until the watch ends.
func (m *Mirror) watch(ctx context.Context, from int64) error {
	ctx, end := context.WithCancelCause(etcd.OwnStream(ctx))
	cancel := func() { end(nil) }
	defer cancel()
	if !m.cutBy(cancel) {
		return errors.New("the loaded state is no longer valid")
	}
	var proving sync.WaitGroup
	defer proving.Wait()
	defer cancel()
	// Watch returns only when the member has created the watch.
	proving.Go(func() { m.requireProgress(ctx, end) })
	first, last := epoch.Range()
	events := m.client.Watch(ctx, first, clientv3.WithRange(last),
		clientv3.WithRev(from), clientv3.WithProgressNotify())
	go m.requestProgress(ctx)
	m.opened()
	defer m.ended()
	for response := range events {
		if err := response.Err(); err != nil {
			return err
		}
		if response.IsProgressNotify() {
			m.advance(response.Header.Revision)
			continue
		}
		if err := m.sameEpoch(ctx, response.Events); err != nil {
			return err
		}
		changes := make([]change, 0, len(response.Events))
		for _, event := range response.Events {
			if !bytes.HasPrefix(event.Kv.Key, []byte(resource.Root)) {
				continue
			}
			if event.Type == mvccpb.DELETE {
				changes = append(changes, change{path: string(event.Kv.Key), revision: event.Kv.ModRevision})
			} else {
				changes = append(changes, m.changeOf(event.Kv))
			}
		}
		// All events of a revision are in one response, so the last revision is complete.
		switch n := len(response.Events); {
		case len(changes) > 0:
			m.apply(changes, response.Events[n-1].Kv.ModRevision)
		case n > 0:
			m.advance(response.Events[n-1].Kv.ModRevision)
		}
	}
	if err := context.Cause(ctx); errors.Is(err, etcd.ErrNoProgress) {
		return err
	}
	return errors.New("etcd ended the watch")
}

// sameEpoch returns an error if events contain a mark of an epoch that is not that of the mirror's state.
func (m *Mirror) sameEpoch(ctx context.Context, events []*clientv3.Event) error {
	if !epoch.Marked(events) {
		return nil
	}
	if _, _, err := m.latest.Do(ctx, struct{}{}); err != nil {
		return fmt.Errorf("reading the epoch: %w", err)
	}
	if _, void := m.reached(); void {
		return errors.New("a new epoch of etcd has begun")
	}
	return nil
}

// reached returns the mirror's revision, and whether it is empty.
func (m *Mirror) reached() (revision int64, void bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision, m.void
}

// cutBy sets the function that cancels the watch after a break of history. It returns
// false if the state has already been dropped.
func (m *Mirror) cutBy(cancel context.CancelFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = cancel
	return !m.void
}

// requestProgress requests progress notifications while a read waits for a revision. If a
// request fails the watch ends too and reports the error.
func (m *Mirror) requestProgress(ctx context.Context) {
	quiet := time.NewTicker(quietProgress)
	defer quiet.Stop()
	again := time.NewTimer(quietProgress)
	defer again.Stop()
	delay, next := progressDelay, time.Now().Add(quietProgress)
	schedule := func() {
		next = time.Now().Add(delay)
		again.Reset(delay)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-quiet.C:
			_ = m.client.RequestProgress(ctx)
		case <-m.lag:
			// A new waiter resets the delay, but does not postpone a request that is due
			// earlier.
			if delay = progressDelay; time.Until(next) > delay || !next.After(time.Now()) {
				schedule()
			}
		case <-again.C:
			if m.awaited() {
				_ = m.client.RequestProgress(ctx)
				delay = min(2*delay, maxProgressDelay)
				schedule()
			}
		}
	}
}

// awaited reports whether a read waits for a revision.
func (m *Mirror) awaited() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiters) > 0
}
