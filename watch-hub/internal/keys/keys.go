// Package keys keeps the master keys with which hubs seal what they publish. They
// are in etcd, beside the objects and out of reach of the API, and shared by all
// hubs: the first one to start makes them. It decides when a key is replaced and
// how long the one before it is accepted. It does not seal anything. It serves
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
	// Path is where the keys are in etcd. Deleting it makes the hubs replace the key.
	Path = "/portico/hub/keys"
	// Overlap is how long a key that was replaced is still accepted: longer than a
	// message is under way, and than a hub needs to learn of the new one.
	Overlap = time.Minute
	// retryEvery is the pause after a failure of etcd.
	retryEvery = 500 * time.Millisecond
	// lookEvery bounds how often readers make a hub look for a key it does not have.
	lookEvery = 100 * time.Millisecond
)

// ErrNotReady says that no key has been read yet.
var ErrNotReady = errors.New("the keys have not been read yet")

// Keys are the keys of the hubs.
type Keys struct {
	etcd  *clientv3.Client
	every time.Duration
	log   *slog.Logger
	ready chan struct{} // closed when there is a key
	now   atomic.Pointer[ring]

	loading sync.Mutex
	looked  time.Time // when a key was last looked for
}

// Held is a key and how long it may still be accepted; 0 is without an end.
type Held struct {
	*seal.Master
	Lifetime time.Duration
}

// ring is what etcd holds at a revision.
type ring struct {
	revision int64
	held     []heldKey // oldest first; the last one seals
}

type heldKey struct {
	*seal.Master
	stored
}

// stored is a key in etcd.
type stored struct {
	Secret   []byte    `json:"secret"`
	Made     time.Time `json:"made"`
	Replaced time.Time `json:"replaced,omitzero"`
}

// New returns Keys that are replaced that often.
func New(etcd *clientv3.Client, every time.Duration, log *slog.Logger) *Keys {
	return &Keys{etcd: etcd, every: every, log: log, ready: make(chan struct{})}
}

// Ready is closed when there is a key.
func (k *Keys) Ready() <-chan struct{} { return k.ready }

// Run keeps the keys up to date until ctx ends, and replaces them when it is time.
func (k *Keys) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		k.log.Warn("following the keys again", "error", err)
		retry.Pause(ctx, retryEvery)
	}
}

// Current returns the key that seals; nil when there is none yet.
func (k *Keys) Current() *seal.Master {
	r := k.now.Load()
	if r == nil {
		return nil
	}
	return r.held[len(r.held)-1].Master
}

// Accepted returns the keys that are accepted, oldest first; the last one seals.
// When none is known, or not the named one, etcd is asked first.
func (k *Keys) Accepted(ctx context.Context, id []byte) ([]Held, error) {
	if now := k.now.Load(); now == nil || len(id) > 0 && !now.has(id) {
		if err := k.look(ctx); err != nil {
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
		if h.Replaced.IsZero() {
			accepted = append(accepted, Held{Master: h.Master})
		} else if rest := h.Replaced.Add(Overlap).Sub(now); rest > 0 {
			accepted = append(accepted, Held{Master: h.Master, Lifetime: rest})
		}
	}
	return accepted, nil
}

func (r *ring) has(id []byte) bool {
	for _, h := range r.held {
		if known := h.ID(); string(known[:]) == string(id) {
			return true
		}
	}
	return false
}

// look reads the keys, unless that was done just now.
func (k *Keys) look(ctx context.Context) error {
	k.loading.Lock()
	defer k.loading.Unlock()
	if time.Since(k.looked) < lookEvery {
		return nil
	}
	_, err := k.load(ctx)
	return err
}

// Rotate replaces the key now. Several hubs that do it at once replace it once.
func (k *Keys) Rotate(ctx context.Context) error {
	r := k.now.Load()
	if r == nil {
		return ErrNotReady
	}
	return k.replace(ctx, r)
}

// follow reads the keys and what becomes of them; it returns only with an error.
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
		due := time.NewTimer(time.Until(r.held[len(r.held)-1].Made.Add(k.every)))
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

// read makes what etcd holds the known keys, and makes new ones when it holds none.
// It returns the revision of etcd that it has seen.
func (k *Keys) read(ctx context.Context) (at int64, err error) {
	k.loading.Lock()
	defer k.loading.Unlock()
	return k.load(ctx)
}

// load is read for who holds the lock: what is read later is newer, even after
// etcd has been restored to an older revision.
func (k *Keys) load(ctx context.Context) (at int64, err error) {
	k.looked = time.Now()
	response, err := k.etcd.Get(ctx, Path)
	if err != nil {
		return 0, err
	}
	if len(response.Kvs) == 0 {
		// Those that are known here have been taken away on purpose.
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
	r := &ring{revision: kv.ModRevision}
	var list []stored
	if err := json.Unmarshal(kv.Value, &list); err != nil || len(list) == 0 {
		return 0, fmt.Errorf("%s in etcd holds no keys: %w", Path, err)
	}
	for _, s := range list {
		master, err := seal.NewMaster(s.Secret)
		if err != nil {
			return 0, fmt.Errorf("%s in etcd: %w", Path, err)
		}
		r.held = append(r.held, heldKey{master, s})
	}
	if k.now.Swap(r) == nil {
		close(k.ready)
	}
	return response.Header.Revision, nil
}

// replace puts a new key behind those of a ring, or learns that another hub was
// faster.
func (k *Keys) replace(ctx context.Context, before *ring) error {
	if err := k.store(ctx, before); err != nil {
		return err
	}
	_, err := k.read(ctx)
	return err
}

// store puts a new key behind those of a ring, if etcd still holds the ring.
func (k *Keys) store(ctx context.Context, before *ring) error {
	now := time.Now()
	var list []stored
	for _, h := range before.held {
		s := h.stored
		if s.Replaced.IsZero() {
			s.Replaced = now
		}
		if now.Before(s.Replaced.Add(Overlap)) {
			list = append(list, s)
		}
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
		k.log.Info("the key of the bus has been replaced", "accepted", len(list))
	}
	return nil
}
