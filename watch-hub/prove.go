package watchhub

import (
	"context"
	"time"

	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/watch-hub/internal/history"
)

// prover receives what prove finds.
type prover struct {
	revisions chan<- int64            // those that were read; closed when the epoch has changed
	end       context.CancelCauseFunc // of the watch
}

// prove reads the epoch and the revision periodically until the epoch has changed. It ends the watch if
// that makes no progress although etcd has a newer revision.
func (f *follower) prove(ctx context.Context, of epoch.Epoch, to prover) {
	_, before := f.window.Span()
	behind := time.Now() // since when etcd is ahead, or the time of the last progress
	patience := etcd.Patience(f.stuck)
	for retry.Pause(ctx, progressEvery) {
		// The watch breaks too if etcd does not respond.
		now, revision, err := f.keeper.Read(ctx)
		if err != nil {
			continue
		}
		if now != of {
			close(to.revisions)
			return
		}
		_, through := f.window.Span()
		switch {
		case through > before:
			before, behind, patience, f.stuck = through, time.Now(), etcd.Patience(0), 0
		case revision <= through:
			behind = time.Now()
		case time.Since(behind) >= patience:
			f.stuck++
			to.end(etcd.ErrNoProgress)
			return
		}
		select {
		case to.revisions <- revision:
		default: // follow has not taken the one before
		}
	}
}

// confirm takes a read that found nothing newer than the window for the progress of the watch: etcd
// does not respond to requests for progress before the first write after the watch began.
func (f *follower) confirm(revision int64) {
	if _, through := f.window.Span(); revision <= through {
		f.take(history.Run{Through: through})
	}
}
