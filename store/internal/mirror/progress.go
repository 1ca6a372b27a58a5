package mirror

import (
	"context"
	"errors"
	"time"

	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// stuckAfter is how long the watch may make no progress while etcd has a newer revision. It doubles
	// with each watch that made none, up to most, in case that etcd needs longer for its first response.
	stuckAfter, mostStuck = 3 * time.Second, 24 * time.Second
	// lookEvery is the interval at which the revisions of the mirror and of etcd are compared.
	lookEvery = 500 * time.Millisecond
)

// errNoProgress is the cause of the end of a watch that does not proceed although etcd does.
var errNoProgress = errors.New("the member of etcd that serves the watch does not proceed, although others do")

// requireProgress ends the watch with errNoProgress if the mirror does not proceed although etcd has a
// newer revision. A member whose disk hangs keeps its connections and knows the leader, so that nothing
// else ends the watch; the client opens the next one at another member.
func (m *Mirror) requireProgress(ctx context.Context, end context.CancelCauseFunc) {
	for retry.Pause(ctx, lookEvery) {
		before, newest, patience := m.position()
		if newest <= before {
			continue
		}
		// The wait requests progress from etcd, which reports none by itself.
		waiting, cancel := context.WithTimeout(ctx, patience)
		err := m.Wait(waiting, newest)
		cancel()
		now, _, _ := m.position()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && now == before {
			m.mu.Lock()
			m.stuck++
			m.mu.Unlock()
			end(errNoProgress)
			return
		}
	}
}

// position returns the revisions of the mirror and of etcd, and how long they may differ without progress.
func (m *Mirror) position() (revision, newest int64, patience time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision, m.newest, min(stuckAfter<<min(m.stuck, 10), mostStuck)
}

// moved records progress, which is also a sign of etcd: a member alone makes none. The caller holds mu.
func (m *Mirror) moved() {
	m.contact.Heard()
	if m.stuck > 0 {
		m.stuck, m.stalled = 0, time.Time{}
	}
}

// opened records that etcd has created the watch. After one without progress the mirror follows etcd again
// only with the first progress.
func (m *Mirror) opened() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stuck == 0 {
		m.stalled = time.Time{}
	}
}

// ended records that the watch has ended.
func (m *Mirror) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled.IsZero() {
		m.stalled = time.Now()
	}
}
