// Package keys manages the master keys with which hubs seal published messages. The keys
// are in etcd, not among the API's objects, and shared by all hubs: the first one to start
// creates them. The package replaces keys, and accepts replaced ones for a while. It serves
// "Watch procedure" of the specification.
package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/kit/seal"
)

const (
	// Path is the etcd key of the master keys. Deleting it makes the hubs replace the
	// key.
	Path = "/portico/hub/keys"
	// Overlap is how long a replaced key is still accepted: longer than a message is in
	// flight, and longer than a hub takes to read the new key.
	Overlap = time.Minute
	// retryEvery is the pause after an error of etcd.
	retryEvery = 500 * time.Millisecond
	// reloadEvery is the minimum interval of reads of etcd for requests with unknown keys.
	reloadEvery = 100 * time.Millisecond
)

// ErrNotReady means that no key has been read yet.
var ErrNotReady = errors.New("the keys have not been read yet")

// Keys holds the keys of the hubs.
type Keys struct {
	etcd  *clientv3.Client
	every time.Duration
	log   *slog.Logger
	ready chan struct{} // closed when there is a key
	now   atomic.Pointer[ring]

	loading sync.Mutex
	loaded  time.Time // the time of the last read of etcd
}

// Held is an accepted key. Lifetime is the time until it is no longer accepted; 0 means
// that it does not expire.
type Held struct {
	*seal.Master
	Lifetime time.Duration
}

// ring holds the keys in etcd at a revision.
type ring struct {
	revision int64
	held     []heldKey // oldest first; the last one seals
}

type heldKey struct {
	*seal.Master
	stored
	// until is when a replaced key is no longer accepted, by the clock of this hub.
	until time.Time
	// seen is when this hub has first read the key.
	seen time.Time
}

// left returns the time until a key is replaced that is replaced at an interval. A key that was made
// in the future, or before the clock of this hub was set back, is not kept longer than another one.
func (h heldKey) left(every time.Duration) time.Duration {
	return min(time.Until(h.Made.Add(every)), time.Until(h.seen.Add(every)))
}

// replaced reports whether another key has taken the place of this one.
func (h heldKey) replaced() bool { return !h.Replaced.IsZero() }

// stored is a key in etcd. Its times are those of the clock of the hub that has written them, which
// may differ from that of the reader by any time.
type stored struct {
	Secret   []byte    `json:"secret"`
	Made     time.Time `json:"made"`
	Replaced time.Time `json:"replaced,omitzero"`
}

// New returns Keys with an interval at which the key is replaced.
func New(etcd *clientv3.Client, every time.Duration, log *slog.Logger) *Keys {
	return &Keys{etcd: etcd, every: every, log: log, ready: make(chan struct{})}
}

// Ready returns a channel that is closed when there is a key.
func (k *Keys) Ready() <-chan struct{} { return k.ready }

// Run keeps the keys up to date until ctx ends, and replaces them when they are due.
func (k *Keys) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		k.log.Warn("watching the bus keys failed, retrying", "error", err)
		retry.Pause(ctx, retryEvery)
	}
}

// Current returns the key that seals; nil if there is none yet.
func (k *Keys) Current() *seal.Master {
	r := k.now.Load()
	if r == nil {
		return nil
	}
	return r.held[len(r.held)-1].Master
}

// Accepted returns the accepted keys, oldest first; the last one seals. It reads etcd first
// if no key has been read, or if id is set and unknown.
func (k *Keys) Accepted(ctx context.Context, id []byte) ([]Held, error) {
	if now := k.now.Load(); now == nil || len(id) > 0 && !now.has(id) {
		if err := k.reload(ctx); err != nil {
			return nil, err
		}
	}
	r := k.now.Load()
	if r == nil {
		return nil, ErrNotReady
	}
	now := time.Now()
	var accepted []Held
	for _, h := range r.held {
		if !h.replaced() {
			accepted = append(accepted, Held{Master: h.Master})
		} else if rest := h.until.Sub(now); rest > 0 {
			accepted = append(accepted, Held{Master: h.Master, Lifetime: rest})
		}
	}
	return accepted, nil
}

func (r *ring) has(id []byte) bool {
	return len(id) == seal.IDBytes && r.find(seal.ID(id)) != nil
}

// find returns the key with an ID, nil if there is none. r may be nil.
func (r *ring) find(id seal.ID) *heldKey {
	if r == nil {
		return nil
	}
	for i := range r.held {
		if r.held[i].ID() == id {
			return &r.held[i]
		}
	}
	return nil
}

// reload reads the keys from etcd, at most once per reloadEvery.
func (k *Keys) reload(ctx context.Context) error {
	k.loading.Lock()
	defer k.loading.Unlock()
	if time.Since(k.loaded) < reloadEvery {
		return nil
	}
	_, err := k.load(ctx)
	return err
}

// Rotate replaces the key. Concurrent calls, also by other hubs, replace it once.
func (k *Keys) Rotate(ctx context.Context) error {
	r := k.now.Load()
	if r == nil {
		return ErrNotReady
	}
	return k.replace(ctx, r)
}

// follow reads the keys and watches them. It always returns an error.
func (k *Keys) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, err := k.read(ctx)
	if err != nil {
		return err
	}
	changed := k.etcd.Watch(clientv3.WithRequireLeader(ctx), Path, clientv3.WithRev(at+1))
	for {
		r := k.now.Load()
		due := time.NewTimer(r.held[len(r.held)-1].left(k.every))
		select {
		case response, ok := <-changed:
			due.Stop()
			if !ok {
				return errors.New("etcd ended the watch")
			}
			if err := response.Err(); err != nil {
				return err
			}
			_, err = k.read(ctx)
		case <-due.C:
			err = k.replace(ctx, r)
		case <-ctx.Done():
			due.Stop()
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// read reads the keys from etcd, and creates them if there are none. It returns the
// revision of the read.
func (k *Keys) read(ctx context.Context) (at int64, err error) {
	k.loading.Lock()
	defer k.loading.Unlock()
	return k.load(ctx)
}

// load is read for a caller that holds the lock loading. Reads are serialized, so the last
// one counts even if etcd has been restored to an older revision.
func (k *Keys) load(ctx context.Context) (at int64, err error) {
	k.loaded = time.Now()
	response, err := k.etcd.Get(ctx, Path)
	if err != nil {
		return 0, err
	}
	if len(response.Kvs) == 0 {
		// Known keys that are not in etcd have been deleted to replace them.
		before := &ring{}
		if known := k.now.Load(); known != nil {
			before.held = known.held
		}
		if err := k.store(ctx, before); err != nil {
			return 0, err
		}
		return k.load(ctx)
	}
	kv := response.Kvs[0]
	before, r := k.now.Load(), &ring{revision: kv.ModRevision}
	var list []stored
	if err := json.Unmarshal(kv.Value, &list); err != nil || len(list) == 0 {
		return 0, fmt.Errorf("%s in etcd has no keys: %w", Path, err)
	}
	for _, s := range list {
		master, err := seal.NewMaster(s.Secret)
		if err != nil {
			return 0, fmt.Errorf("%s in etcd: %w", Path, err)
		}
		r.held = append(r.held, before.hold(master, s, k.loaded))
	}
	if k.now.Swap(r) == nil {
		close(k.ready)
	}
	return response.Header.Revision, nil
}

// hold returns a key that was read from etcd, after the ring that was read before, which may be nil.
// The overlap begins when this hub learns that a key is replaced. Only of a key that it has not
// known as the current one does it trust the time in etcd, and for no more than the overlap.
func (r *ring) hold(m *seal.Master, s stored, now time.Time) heldKey {
	h := heldKey{Master: m, stored: s, seen: now}
	known := r.find(m.ID())
	if known != nil {
		h.seen = known.seen
	}
	switch {
	case !h.replaced():
	case known == nil:
		h.until = now.Add(min(Overlap, s.Replaced.Add(Overlap).Sub(now)))
	case known.replaced():
		h.until = known.until
	default:
		h.until = now.Add(Overlap)
	}
	return h
}

// replace appends a new key to a ring, unless another hub has replaced it, and reads the
// keys.
func (k *Keys) replace(ctx context.Context, before *ring) error {
	if err := k.store(ctx, before); err != nil {
		return err
	}
	_, err := k.read(ctx)
	return err
}

// store appends a new key to a ring, if etcd still holds the ring.
func (k *Keys) store(ctx context.Context, before *ring) error {
	now := time.Now()
	var list []stored
	for _, h := range before.held {
		s := h.stored
		if !h.replaced() {
			s.Replaced = now
		} else if !now.Before(h.until) {
			continue
		}
		list = append(list, s)
	}
	list = append(list, stored{Secret: seal.NewSecret(), Made: now})
	value, err := json.Marshal(list)
	if err != nil {
		return err
	}
	response, err := k.etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(Path), "=", before.revision)).
		Then(clientv3.OpPut(Path, string(value))).Commit()
	if err != nil {
		return err
	}
	if response.Succeeded {
		k.log.Info("replaced the bus key", "accepted", len(list))
	}
	return nil
}
