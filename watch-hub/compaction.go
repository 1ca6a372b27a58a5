package watchhub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// marksKey holds the marks, so that they survive a restart: etcd is compacted one history after it.
const marksKey = "/portico/hub/marks"

// marksPerHistory is the number of marks per --watch-history, or per
// --etcd-compaction-interval if that is longer, which bounds their number.
const marksPerHistory = 10

// clockError is how much the clocks of hubs may differ, and jump, without effect on compaction. Marks that are older by
// these clocks count as old at once, so that etcd is compacted also where no hub runs for as long as the history.
const clockError = 24 * time.Hour

// marks records the age of revisions. All hubs share them in etcd. Each measures their age by itself, from when it
// first saw them: by the clock of another hub the history could be too short.
type marks struct {
	Compacted int64  `json:"compacted"` // etcd has been compacted to it
	List      []mark `json:"list"`      // after it, oldest first
}

// mark is the newest revision at some time.
type mark struct {
	Time     time.Time `json:"time"`
	Revision int64     `json:"revision"`
}

// compactAlways compacts revisions that are older than the history, until ctx ends, while
// this hub is the publisher.
func (f *follower) compactAlways(ctx context.Context) {
	if f.config.CompactEvery < 0 {
		return
	}
	ticker := time.NewTicker(f.markEvery())
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			turn := f.compactAt
			if !f.election.leads() {
				turn = f.noteMarksAt // so that the history is no longer when this hub takes over
			}
			if err := turn(ctx, now); err != nil && ctx.Err() == nil {
				f.log.Warn("compacting etcd failed", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// markEvery is the time between marks.
func (f *follower) markEvery() time.Duration {
	return max(f.config.History, f.config.CompactEvery) / marksPerHistory
}

// noteMarksAt notes which marks there are.
func (f *follower) noteMarksAt(ctx context.Context, now time.Time) error {
	saved, _, err := f.loadMarks(ctx)
	if err == nil {
		f.noteMarks(saved, now)
	}
	return err
}

// noteMarks notes when this hub first saw each mark, and forgets those that are gone.
func (f *follower) noteMarks(saved marks, now time.Time) {
	seen := make(map[int64]time.Time, len(saved.List))
	for _, m := range saved.List {
		at, ok := f.seen[m.Revision]
		if !ok {
			at = now
		}
		if latest := m.Time.Add(clockError); latest.Before(at) {
			at = latest
		}
		seen[m.Revision] = at
	}
	f.seen = seen
}

// compactAt adds a mark with the newest revision that the hub has seen, and compacts to
// the newest mark that is older than the history, unless it has compacted within
// CompactEvery. The compacted revision is never ahead
// of a hub that lags. Without new revisions it writes nothing.
func (f *follower) compactAt(ctx context.Context, now time.Time) error {
	saved, modified, err := f.loadMarks(ctx)
	if err != nil {
		return err
	}
	f.noteMarks(saved, now)
	var oldest time.Time // keeps all marks
	// Ticks are not exact: half a tick early is on time.
	if f.compacted.IsZero() || now.Sub(f.compacted) >= f.config.CompactEvery-f.markEvery()/2 {
		oldest = now.Add(-f.config.History)
	}
	next := saved.next(mark{Time: now, Revision: f.window.Newest()}, func(m mark) bool { return f.seen[m.Revision].After(oldest) })
	f.noteMarks(next, now)
	if next.Compacted > saved.Compacted {
		// Compact before saving the marks: compaction can be repeated.
		_, err := f.etcd.Compact(ctx, next.Compacted)
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return err
		}
		f.compacted = now
	}
	if next.Compacted == saved.Compacted && len(next.List) == len(saved.List) {
		return nil
	}
	return f.saveMarks(ctx, next, modified)
}

// next returns the marks with newest added, if its revision is new. Marks that are not young
// are removed, and Compacted is the last of their revisions.
func (m marks) next(newest mark, young func(mark) bool) marks {
	next := marks{Compacted: m.Compacted}
	last := m.Compacted
	for _, old := range m.List {
		last = old.Revision
		if young(old) {
			next.List = append(next.List, old)
		} else {
			next.Compacted = old.Revision
		}
	}
	if newest.Revision > last {
		next.List = append(next.List, newest)
	}
	return next
}

// loadMarks returns the marks and the revision at which they were saved.
func (f *follower) loadMarks(ctx context.Context) (saved marks, modified int64, err error) {
	response, err := f.etcd.Get(ctx, marksKey)
	if err != nil || len(response.Kvs) == 0 {
		return marks{}, 0, err
	}
	if err := json.Unmarshal(response.Kvs[0].Value, &saved); err != nil {
		return marks{}, 0, fmt.Errorf("%s: %w", marksKey, err)
	}
	return saved, response.Kvs[0].ModRevision, nil
}

// saveMarks saves the marks unless another hub has saved them since modified.
func (f *follower) saveMarks(ctx context.Context, m marks, modified int64) error {
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = f.etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(marksKey), "=", modified)).
		Then(clientv3.OpPut(marksKey, string(value))).Commit()
	return err
}
