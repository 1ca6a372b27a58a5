// Package epoch notices that etcd is no longer the store that it was: restored
// from an older backup, or replaced by another cluster. An epoch is one unbroken
// history of revisions; it ends when etcd's revision goes back or the cluster's id
// changes.
//
// A key outside of the objects names the epoch. Every linearizable read of it
// proves that history is unbroken up to that read, so that whoever needs the
// newest revision anyway reads this key. Whoever finds a break begins a new epoch:
// it first raises etcd's revision beyond everything that was seen of the epoch
// before, so that no revision has two meanings, and then writes the key.
//
// It decides when history is broken and where the new one begins. It never reads
// or writes objects. It serves "Read consistency" and "Persistence" of the
// specification.
package epoch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// Key holds the epoch.
	Key = "/portico/epoch"
	// raiseKey is written to raise etcd's revision.
	raiseKey = "/portico/epoch-raise"
	// margin is how far a new epoch begins beyond what this process has seen of the
	// one before: other processes may have seen more.
	margin = 2_000
	// maxRaise bounds how many revisions are skipped. When more are missing, the
	// epochs overlap, and only followers that compare epochs are safe.
	maxRaise = 1 << 20
	// raisers is how many writes that raise the revision are in flight: etcd syncs
	// its log once for all of them.
	raisers = 1_000
)

// Epoch is one unbroken history of etcd.
type Epoch struct {
	// ID is random; the zero value is no epoch.
	ID string `json:"id"`
	// Cluster is the id of the etcd cluster in which it began.
	Cluster uint64 `json:"cluster"`
	// After is the revision after which it began. Revisions up to it, where they
	// are held at all, mean something else to those who saw the epoch before. The
	// first epoch of a store begins after 0.
	After int64 `json:"after"`
}

// Config is what a Keeper needs.
type Config struct {
	KV  clientv3.KV
	Log *slog.Logger
	// Broken is called as soon as a break is found, before the new epoch begins,
	// and also when another process was first to begin it. It must not block.
	Broken func()
}

// Keeper knows the epoch of one process.
type Keeper struct {
	config Config

	// settling is held by the one who begins a new epoch.
	settling sync.Mutex

	mu     sync.Mutex
	known  Epoch
	seen   int64 // newest revision that this process has seen in the known epoch
	proven int64 // newest one that was read together with the known epoch
	raise  int64 // while history is broken: the revision to raise etcd to
	why    string
}

// New returns a Keeper that knows no epoch yet.
func New(config Config) *Keeper {
	if config.Broken == nil {
		config.Broken = func() {}
	}
	return &Keeper{config: config}
}

// Saw notes a revision that came with a change of the store.
func (k *Keeper) Saw(revision int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = max(k.seen, revision)
}

// Broken returns why history is broken while no new epoch has begun; nil when all
// is well.
func (k *Keeper) Broken() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.why == "" {
		return nil
	}
	return errors.New(k.why)
}

// Read returns etcd's newest revision and the epoch that it belongs to, read
// linearizably after the call began. When history is broken it begins a new epoch
// first.
func (k *Keeper) Read(ctx context.Context) (Epoch, int64, error) {
	for {
		k.mu.Lock()
		known, seen, raising := k.known, k.seen, k.why != ""
		k.mu.Unlock()
		if raising {
			if err := k.settle(ctx); err != nil {
				return Epoch{}, 0, err
			}
			continue
		}
		answer, err := k.config.KV.Get(ctx, Key)
		if err != nil {
			return Epoch{}, 0, err
		}
		found, err := parse(answer.Kvs)
		if err != nil {
			return Epoch{}, 0, err
		}
		if known.ID == "" && found.ID == "" {
			err = k.write(ctx, 0, Epoch{ID: rand.Text(), Cluster: answer.Header.ClusterId})
			if err != nil {
				return Epoch{}, 0, err
			}
			continue
		}
		if k.judge(reading{known, seen, found, answer.Header.Revision, answer.Header.ClusterId}) {
			return found, answer.Header.Revision, nil
		}
	}
}

// reading is what was known before a read of the key, and what was read.
type reading struct {
	known    Epoch
	seen     int64
	found    Epoch
	revision int64
	cluster  uint64
}

// judge reports whether a reading is the state of the known epoch, or of one that
// it can take for known. It returns false when history is broken, or when the
// reading has been overtaken by another.
func (k *Keeper) judge(r reading) bool {
	k.mu.Lock()
	if k.known != r.known || k.why != "" {
		k.mu.Unlock()
		return false
	}
	why := ""
	switch {
	case r.found.ID == "":
		why = fmt.Sprintf("etcd holds another history: epoch %q is gone, and it is at revision %d after %d", r.known.ID, r.revision, r.seen)
	case r.found.Cluster != r.cluster:
		why = fmt.Sprintf("etcd is another cluster: id %x, not %x", r.cluster, r.found.Cluster)
	case r.found == r.known && r.revision < r.seen:
		why = fmt.Sprintf("etcd went back in time: it is at revision %d and was at %d", r.revision, r.seen)
	case r.found != r.known && r.known.ID != "" && r.found.After < k.proven:
		why = fmt.Sprintf("etcd holds another history: epoch %q at revision %d, not %q at %d", r.found.ID, r.revision, r.known.ID, k.proven)
	}
	if why != "" {
		k.why, k.raise = why, max(k.seen, k.proven, r.revision)+margin
		k.mu.Unlock()
		k.config.Log.Error("the history of etcd is broken, everything is read anew", "reason", why)
		k.config.Broken()
		return false
	}
	replaced := r.found != r.known && r.known.ID != ""
	if r.found != r.known {
		k.known, k.seen, k.proven = r.found, r.revision, 0
	}
	k.seen, k.proven = max(k.seen, r.revision), max(k.proven, r.revision)
	k.mu.Unlock()
	if replaced {
		k.config.Log.Warn("a new epoch of the store has begun, everything is read anew", "epoch", r.found.ID, "after", r.found.After)
		k.config.Broken()
	}
	return true
}

// settle begins a new epoch. What it has done when it fails is not done again.
func (k *Keeper) settle(ctx context.Context) error {
	k.settling.Lock()
	defer k.settling.Unlock()
	k.mu.Lock()
	known, target, raising := k.known, k.raise, k.why != ""
	k.mu.Unlock()
	if !raising {
		return nil // another goroutine was first
	}
	answer, err := k.config.KV.Get(ctx, Key)
	if err != nil {
		return err
	}
	found, err := parse(answer.Kvs)
	if err != nil {
		return err
	}
	if found.Cluster == answer.Header.ClusterId && found.After >= target-margin && found != known {
		k.begun(found, answer.Header.Revision) // another process was first
		return nil
	}
	revision := answer.Header.Revision
	if missing := target - revision; missing > maxRaise {
		k.config.Log.Error("too many revisions are missing to skip them all: clients that name a resourceVersion of the lost history may miss changes",
			"missing", missing, "advice", "restore with etcdutl snapshot restore --bump-revision --mark-compacted")
	} else if revision, err = k.raiseTo(ctx, revision, target); err != nil {
		return fmt.Errorf("raising etcd's revision: %w", err)
	}
	var modified int64
	if len(answer.Kvs) > 0 {
		modified = answer.Kvs[0].ModRevision
	}
	next := Epoch{ID: rand.Text(), Cluster: answer.Header.ClusterId, After: revision}
	if err := k.write(ctx, modified, next); err != nil {
		return err
	}
	answer, err = k.config.KV.Get(ctx, Key)
	if err != nil {
		return err
	}
	if found, err = parse(answer.Kvs); err == nil && found == next {
		k.begun(next, answer.Header.Revision)
	}
	return err // when another process was faster, the next call looks at its epoch
}

// begun takes an epoch for the known one.
func (k *Keeper) begun(e Epoch, revision int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known, k.seen, k.proven, k.raise, k.why = e, revision, revision, 0, ""
	k.config.Log.Warn("a new epoch of the store has begun", "epoch", e.ID, "after", e.After)
}

// raiseTo writes until etcd's revision is at least target, and returns it.
func (k *Keeper) raiseTo(ctx context.Context, revision, target int64) (int64, error) {
	if revision >= target {
		return revision, nil
	}
	var all sync.WaitGroup
	reached, failures := make([]int64, raisers), make([]error, raisers)
	for i := range reached {
		all.Go(func() {
			for reached[i] < target {
				answer, err := k.config.KV.Put(ctx, raiseKey, "")
				if err != nil {
					failures[i] = err
					return
				}
				reached[i] = answer.Header.Revision
			}
		})
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return 0, err // one says it for all
		}
	}
	return max(revision, slices.Max(reached)), nil
}

// write writes the key unless it has been modified since.
func (k *Keeper) write(ctx context.Context, modified int64, e Epoch) error {
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = k.config.KV.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(Key), "=", modified)).
		Then(clientv3.OpPut(Key, string(value))).Commit()
	return err
}

// parse returns the epoch that the key holds; the zero value when it does not exist.
func parse(kvs []*mvccpb.KeyValue) (e Epoch, err error) {
	if len(kvs) == 0 {
		return Epoch{}, nil
	}
	if err := json.Unmarshal(kvs[0].Value, &e); err != nil || e.ID == "" {
		return Epoch{}, fmt.Errorf("%s in etcd does not name an epoch: %q", Key, kvs[0].Value)
	}
	return e, nil
}
