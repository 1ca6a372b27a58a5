package mirror

import (
	"context"
	"errors"
	"time"

	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/retry"
)

// lookEvery is the interval at which the revisions of the mirror and of etcd are compared.
const lookEvery = 500 * time.Millisecond

// requireProgress ends the watch with ErrNoProgress if the mirror does not proceed although etcd has a
// newer revision.
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
			end(etcd.ErrNoProgress)
			return
		}
	}
}

// position returns the revisions of the mirror and of etcd, and how long they may differ without progress.
func (m *Mirror) position() (revision, newest int64, patience time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision, m.newest, etcd.Patience(m.stuck)
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
