package watchhub

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// publisherKey names the publishing hub.
	publisherKey = "/portico/hub/publisher"
	// leaseSeconds is how long a crashed hub keeps others from publishing if its
	// heartbeats are not expected.
	leaseSeconds = 5
	// calmAfter is how long a change of the leadership makes the next one slower.
	calmAfter = time.Minute
	// maxCaution bounds that: the patience is doubled so many times.
	maxCaution = 3
)

// election decides which of several hubs publishes. It saves work and is not needed for
// correctness: followers drop what two hubs publish, and detect what none did.
type election struct {
	etcd    *clientv3.Client
	beats   *heartbeats
	name    string
	log     *slog.Logger
	leading atomic.Bool
	changes []time.Time                        // of the leadership, in the last calmAfter
	current atomic.Pointer[context.CancelFunc] // cancels the term
	signals []chan struct{}                    // receive after each won election
}

func newElection(etcd *clientv3.Client, beats *heartbeats, name string, log *slog.Logger) *election {
	return &election{etcd: etcd, beats: beats, name: name, log: log}
}

// leads reports whether this hub publishes.
func (e *election) leads() bool { return e.leading.Load() }

// won returns a channel that receives after each won election. It must be called before run.
func (e *election) won() <-chan struct{} {
	signal := make(chan struct{}, 1)
	e.signals = append(e.signals, signal)
	return signal
}

// again ends the term, or the wait for it, and restarts the election: what this hub
// knows of the leadership belongs to a history that has ended.
func (e *election) again() {
	if end := e.current.Load(); end != nil {
		(*end)()
	}
}

// run takes part in the election until ctx ends, and then resigns.
func (e *election) run(ctx context.Context) {
	// Only once: two running hubs of one name would take the leadership from each other
	// forever.
	succeed := true
	for ctx.Err() == nil {
		if err := e.term(ctx, succeed); err != nil && ctx.Err() == nil {
			e.log.Warn("election failed, retrying", "error", err)
			retry.Pause(ctx, retryEvery)
		}
		succeed = false
	}
}

// term waits for the leadership, holds it, and returns when it is lost.
func (e *election) term(ctx context.Context, succeed bool) error {
	session, err := concurrency.NewSession(e.etcd, concurrency.WithTTL(leaseSeconds), concurrency.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	defer resign(session)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.current.Store(&cancel)
	go func() {
		select {
		case <-session.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	held, err := e.claim(ctx, session.Lease())
	for ; err == nil && !held.mine; held, err = e.claim(ctx, session.Lease()) {
		if succeed && held.name == e.name {
			succeed, err = false, e.takeOver(ctx, held)
		} else {
			err = e.untilFree(ctx, held)
		}
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	e.log.Info("this hub publishes", "name", e.name)
	e.changed(time.Now())
	e.beats.lead(held.taken)
	defer e.beats.lead(0)
	e.leading.Store(true)
	defer e.leading.Store(false)
	for _, signal := range e.signals {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
	return e.untilChanged(ctx, held.revision)
}

// resign releases the leadership at once, even while the hub stops.
func resign(session *concurrency.Session) {
	session.Orphan()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// If this fails, the lease expires by itself.
	_, _ = session.Client().Revoke(ctx, session.Lease())
}

// leadership is the publishing hub as read from etcd.
type leadership struct {
	mine     bool
	name     string
	taken    int64 // the revision at which it was taken
	revision int64 // the revision at which it was read
}

// claim takes the leadership if it is free.
func (e *election) claim(ctx context.Context, lease clientv3.LeaseID) (leadership, error) {
	response, err := e.etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(publisherKey), "=", 0)).
		Then(clientv3.OpPut(publisherKey, e.name, clientv3.WithLease(lease))).Else(clientv3.OpGet(publisherKey)).Commit()
	if err != nil {
		return leadership{}, err
	}
	if response.Succeeded {
		return leadership{mine: true, name: e.name, taken: response.Header.Revision, revision: response.Header.Revision}, nil
	}
	kv := response.Responses[0].GetResponseRange().Kvs[0]
	return leadership{name: string(kv.Value), taken: kv.ModRevision, revision: response.Header.Revision}, nil
}

// takeOver frees the leadership if it is still held as it was read.
func (e *election) takeOver(ctx context.Context, o leadership) error {
	_, err := e.etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(publisherKey), "=", o.taken)).
		Then(clientv3.OpDelete(publisherKey)).Commit()
	return err
}

// untilFree returns when the leadership has changed, or when this hub has freed it
// because the publishing hub is silent. That hub may only be slow: then both publish for
// a moment, which followers do not notice.
func (e *election) untilFree(ctx context.Context, o leadership) error {
	defer func() { e.changed(time.Now()) }()
	silent := e.beats.await(o.taken, e.patience(time.Now()))
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan error, 1)
	go func() { changed <- e.untilChanged(waiting, o.revision) }()
	select {
	case err := <-changed:
		return err
	case <-silent:
		e.log.Warn("no heartbeats of the publishing hub, taking over", "name", o.name)
		return e.takeOver(ctx, o)
	}
}

// changed notes a change of the leadership.
func (e *election) changed(now time.Time) { e.changes = append(e.changes, now) }

// patience returns how many heartbeats the publishing hub may miss. When the leadership
// has changed repeatedly, hubs may be too slow for the usual number, and then it is
// larger, so that it does not go back and forth between them.
func (e *election) patience(now time.Time) int {
	e.changes = slices.DeleteFunc(e.changes, func(t time.Time) bool { return now.Sub(t) > calmAfter })
	return missedHeartbeats << min(max(0, len(e.changes)-2), maxCaution)
}

// untilChanged returns when the leadership changes after a revision.
func (e *election) untilChanged(ctx context.Context, after int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for response := range e.etcd.Watch(ctx, publisherKey, clientv3.WithRev(after+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		if len(response.Events) > 0 {
			return nil
		}
	}
	return ctx.Err()
}
