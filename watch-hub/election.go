package watchhub

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// publisherKey names the publishing hub.
	publisherKey = "/portico/hub/publisher"
	// leaseSeconds is how long a crashed hub keeps others from publishing.
	leaseSeconds = 5
)

// election decides which of several hubs publishes. It saves work and is not needed for
// correctness: followers drop what two hubs publish, and detect what none did.
type election struct {
	etcd    *clientv3.Client
	name    string
	log     *slog.Logger
	leading atomic.Bool
	current atomic.Pointer[context.CancelFunc] // cancels the term
	signal  chan struct{}
}

func newElection(etcd *clientv3.Client, name string, log *slog.Logger) *election {
	return &election{etcd: etcd, name: name, log: log, signal: make(chan struct{}, 1)}
}

// leads reports whether this hub publishes.
func (e *election) leads() bool { return e.leading.Load() }

// won receives after each won election.
func (e *election) won() <-chan struct{} { return e.signal }

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
			err = e.untilChanged(ctx, held.revision)
		}
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	e.log.Info("this hub publishes", "name", e.name)
	e.leading.Store(true)
	defer e.leading.Store(false)
	select {
	case e.signal <- struct{}{}:
	default:
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
