// Package epoch detects that etcd was restored from an older backup or replaced by another
// cluster. An epoch is one unbroken history of revisions; it ends when etcd's revision
// decreases or the cluster ID changes.
//
// A key outside of the objects names the epoch. Every linearizable read of it proves that
// history is unbroken up to that read, so reads of the newest revision use this key. A
// process that detects a break begins a new epoch. Its first write ends the previous one: it
// puts a pending epoch into the key, which no process accepts, so that nobody takes the
// revisions that follow for a continuation of what it has seen. Then it raises etcd's
// revision above all revisions that were seen in the previous epoch, so that no revision has
// two meanings, and writes the new epoch. Any process continues a pending epoch.
//
// It never reads or writes objects. It serves "Read consistency" and "Persistence" of the
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

	"github.com/portico-platform/portico/services/resource"
)

const (
	// Key holds the epoch.
	Key = "/portico/epoch"
	// raiseKey is written to raise etcd's revision.
	raiseKey = "/portico/epoch-raise"
	// margin is the distance of a new epoch from the newest revision that this process has
	// seen in the previous one: other processes may have seen newer ones.
	margin = 2_000
	// maxRaise bounds the number of skipped revisions. If more are missing, revisions of
	// the epochs overlap, and only followers that compare epochs are safe.
	maxRaise = 1 << 20
	// raisers is the number of concurrent writes that raise the revision: etcd syncs its
	// log once for all of them.
	raisers = 1_000
)

// Range returns the range of keys that a watch of all objects covers, so that it sees the end of its epoch before
// anything that follows, and before progress that comes from a raise. The caller ignores keys that are not those of
// objects, after Marked.
func Range() (from, end string) { return Key, clientv3.GetPrefixRangeEnd(resource.Root) }

// Marked reports whether what happened after the beginning of a watch of Range may belong to another epoch, which has to be
// read then, before the events are used. It may be the same one: of two processes that raise the revision, one
// may write for the last time after the other has begun the new epoch.
func Marked(events []*clientv3.Event) bool {
	return slices.ContainsFunc(events, func(e *clientv3.Event) bool {
		return string(e.Kv.Key) == Key || string(e.Kv.Key) == raiseKey
	})
}

// Epoch is one unbroken history of etcd.
type Epoch struct {
	// ID is random; empty means no epoch.
	ID string `json:"id"`
	// Cluster is the ID of the etcd cluster in which it began.
	Cluster uint64 `json:"cluster"`
	// After is the revision after which it began. Revisions up to it may have had another
	// meaning in the previous epoch. The first epoch of a store begins after 0.
	After int64 `json:"after"`
	// Pending is true while the revision is raised to Target. Read never returns such an epoch. Earlier
	// releases take it for an epoch that did not follow what they have seen, and replace it by one of their own.
	Pending bool  `json:"pending,omitempty"`
	Target  int64 `json:"target,omitempty"`
}

// Config configures a Keeper.
type Config struct {
	KV  clientv3.KV
	Log *slog.Logger
	// Broken is called when a break is detected, before the new epoch begins, and also
	// when another process has begun it. It must not block.
	Broken func()
}

// Keeper tracks the epoch for one process.
type Keeper struct {
	config Config

	// starting is held while a new epoch is begun. Lock order: starting, mu.
	starting sync.Mutex

	mu     sync.Mutex
	known  Epoch
	seen   int64  // newest revision that this process has seen in the known epoch
	proven int64  // newest revision that was read together with the known epoch
	raise  int64  // while history is broken: the target revision of etcd
	why    string // why history is broken, empty if it is not
}

// New returns a Keeper without an epoch.
func New(config Config) *Keeper {
	if config.Broken == nil {
		config.Broken = func() {}
	}
	return &Keeper{config: config}
}

// Saw records the revision of a change in the store.
func (k *Keeper) Saw(revision int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = max(k.seen, revision)
}

// Broken returns why history is broken while no new epoch has begun, else nil.
func (k *Keeper) Broken() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.why == "" {
		return nil
	}
	return errors.New(k.why)
}

// Read returns etcd's newest revision and its epoch from a linearizable read. If history
// is broken, it first begins a new epoch.
func (k *Keeper) Read(ctx context.Context) (Epoch, int64, error) {
	for {
		k.mu.Lock()
		known, seen, raising := k.known, k.seen, k.why != ""
		k.mu.Unlock()
		if raising {
			if err := k.startEpoch(ctx); err != nil {
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
		if k.accept(reading{known, seen, found, answer.Header.Revision, answer.Header.ClusterId}) {
			return found, answer.Header.Revision, nil
		}
	}
}

// reading is the state before a read of the key, and the result of the read.
type reading struct {
	known    Epoch
	seen     int64
	found    Epoch
	revision int64
	cluster  uint64
}

// accept reports whether a reading continues the known epoch, or is of an epoch that
// becomes the known one. It returns false if history is broken, or if another reading was
// accepted in the meantime.
func (k *Keeper) accept(r reading) bool {
	k.mu.Lock()
	if k.known != r.known || k.why != "" {
		k.mu.Unlock()
		return false
	}
	why := ""
	switch {
	case r.found.Pending && r.found.Cluster == r.cluster:
		why = fmt.Sprintf("etcd has another history, whose epoch begins after revision %d: it is at %d", r.found.Target, r.revision)
	case r.found.ID == "":
		why = fmt.Sprintf("etcd has another history: epoch %q is gone, and it is at revision %d after %d", r.known.ID, r.revision, r.seen)
	case r.found.Cluster != r.cluster:
		why = fmt.Sprintf("etcd is another cluster: id %x, not %x", r.cluster, r.found.Cluster)
	case r.found == r.known && r.revision < r.seen:
		why = fmt.Sprintf("etcd went back to an earlier revision: it is at %d and was at %d", r.revision, r.seen)
	case r.found != r.known && r.known.ID != "" && r.found.After < k.proven:
		why = fmt.Sprintf("etcd has another history: epoch %q at revision %d, not %q at %d", r.found.ID, r.revision, r.known.ID, k.proven)
	}
	if why != "" {
		k.why, k.raise = why, k.aim(r)
		k.mu.Unlock()
		k.config.Log.Error("the history of etcd is broken, everything is read again", "reason", why)
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
		k.config.Log.Warn("a new epoch of the store has begun, everything is read again", "epoch", r.found.ID, "after", r.found.After)
		k.config.Broken()
	}
	return true
}

// aim returns the revision to which a break raises etcd. mu is held. The revision of a pending epoch grows meanwhile, and is
// not what the previous one had.
func (k *Keeper) aim(r reading) int64 {
	switch seen := max(k.seen, k.proven); {
	case !r.found.Pending || r.found.Cluster != r.cluster:
		return max(seen, r.revision) + margin
	case r.known.ID == "":
		return r.found.Target
	default:
		return max(seen+margin, r.found.Target)
	}
}

// startEpoch begins a new epoch. After an error it can be called again and continues from the
// current revision.
func (k *Keeper) startEpoch(ctx context.Context) error {
	k.starting.Lock()
	defer k.starting.Unlock()
	for {
		k.mu.Lock()
		known, target, raising := k.known, k.raise, k.why != ""
		k.mu.Unlock()
		if !raising {
			return nil // begun, perhaps by another goroutine
		}
		answer, err := k.config.KV.Get(ctx, Key)
		if err != nil {
			return err
		}
		found, err := parse(answer.Kvs)
		if err != nil {
			return err
		}
		here := found.Cluster == answer.Header.ClusterId
		switch {
		case !found.Pending && here && found.After >= target-margin && found != known:
			k.begun(found, answer.Header.Revision) // perhaps by another process
			continue
		case !found.Pending || !here || found.Target < target:
			// The previous epoch ends before the first raise, and whoever raises knows of the largest target.
			err = k.write(ctx, modified(answer.Kvs), Epoch{ID: rand.Text(), Cluster: answer.Header.ClusterId, Pending: true, Target: target})
		default:
			err = k.finish(ctx, found, answer)
		}
		if err != nil {
			return err
		}
	}
}

// finish raises etcd's revision to the target of a pending epoch, and then replaces it unless it has changed since.
func (k *Keeper) finish(ctx context.Context, pending Epoch, answer *clientv3.GetResponse) (err error) {
	revision := answer.Header.Revision
	if missing := pending.Target - revision; missing > maxRaise {
		k.config.Log.Error("too many revisions are missing to skip them all: clients with a resourceVersion of the lost history may miss changes",
			"missing", missing, "advice", "restore with etcdutl snapshot restore --bump-revision --mark-compacted")
		k.mu.Lock()
		k.raise = min(k.raise, revision+margin) // with the epoch that begins here
		k.mu.Unlock()
	} else if revision, err = k.raiseTo(ctx, revision, pending.Target); err != nil {
		return fmt.Errorf("raising etcd's revision: %w", err)
	}
	return k.write(ctx, modified(answer.Kvs), Epoch{ID: rand.Text(), Cluster: answer.Header.ClusterId, After: revision})
}

// modified returns the revision of the key, 0 if it does not exist.
func modified(kvs []*mvccpb.KeyValue) int64 {
	if len(kvs) == 0 {
		return 0
	}
	return kvs[0].ModRevision
}

// begun makes an epoch the known one.
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
			return 0, err // the others are similar
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

// parse returns the epoch of the key, the zero value if the key does not exist.
func parse(kvs []*mvccpb.KeyValue) (e Epoch, err error) {
	if len(kvs) == 0 {
		return Epoch{}, nil
	}
	if err := json.Unmarshal(kvs[0].Value, &e); err != nil || e.ID == "" {
		return Epoch{}, fmt.Errorf("%s in etcd is not an epoch: %q", Key, kvs[0].Value)
	}
	return e, nil
}
