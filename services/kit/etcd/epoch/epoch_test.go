package epoch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// world is a fake etcd that can be restored: one key, and a revision that every put
// increments. The tests of the store and the end-to-end tests use a real one.
type world struct {
	clientv3.KV
	mu       sync.Mutex
	cluster  uint64
	revision int64
	value    []byte
	modified int64
	offline  bool
	raised   func() // called after each put, if it is set
}

func (w *world) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: w.cluster, Revision: w.revision}
}

func (w *world) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer := &clientv3.GetResponse{Header: w.header()}
	if w.value != nil {
		answer.Kvs = []*mvccpb.KeyValue{{Value: w.value, ModRevision: w.modified}}
	}
	return answer, nil
}

func (w *world) Put(context.Context, string, string, ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.offline {
		return nil, fmt.Errorf("offline")
	}
	w.revision++
	answer := &clientv3.PutResponse{Header: w.header()}
	if w.raised != nil {
		w.mu.Unlock()
		w.raised()
		w.mu.Lock()
	}
	return answer, nil
}

func (w *world) Txn(context.Context) clientv3.Txn { return &txn{world: w} }

// txn writes the key if it has not been modified.
type txn struct {
	clientv3.Txn
	world    *world
	expected int64
	value    []byte
}

func (x *txn) If(c ...clientv3.Cmp) clientv3.Txn {
	x.expected = c[0].GetCompare().GetModRevision()
	return x
}

func (x *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.value = ops[0].ValueBytes()
	return x
}

func (x *txn) Commit() (*clientv3.TxnResponse, error) {
	w := x.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.modified != x.expected {
		return &clientv3.TxnResponse{Header: w.header()}, nil
	}
	w.revision++
	w.value, w.modified = x.value, w.revision
	return &clientv3.TxnResponse{Header: w.header(), Succeeded: true}, nil
}

// backup is an earlier state, for restore.
type backup struct {
	revision, modified int64
	value              []byte
}

func (w *world) backup() backup { return backup{w.revision, w.modified, w.value} }

func (w *world) restore(b backup) { w.revision, w.modified, w.value = b.revision, b.modified, b.value }

func (w *world) keeper(broken func()) *Keeper {
	return New(Config{KV: w, Log: slog.New(slog.DiscardHandler), Broken: broken})
}

func read(t *testing.T, k *Keeper) (Epoch, int64) {
	t.Helper()
	e, revision, err := k.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e, revision
}

func TestAnEpochLastsWhileHistoryDoes(t *testing.T) {
	w := &world{cluster: 7, revision: 1}
	var broken atomic.Int32
	one, two := w.keeper(func() { broken.Add(1) }), w.keeper(func() { broken.Add(1) })
	first, _ := read(t, one)
	if first.ID == "" || first.After != 0 || first.Cluster != 7 {
		t.Errorf("the first epoch is %+v", first)
	}
	for range 3 {
		w.revision += 100
		one.Saw(w.revision)
		for _, k := range []*Keeper{one, two} {
			if e, revision := read(t, k); e != first || revision != w.revision {
				t.Errorf("%+v at %d", e, revision)
			}
		}
	}
	if broken.Load() > 0 {
		t.Error("the history is reported as broken")
	}
}

func TestABreakBeginsAnEpoch(t *testing.T) {
	for what, restore := range map[string]func(*world, backup){
		"older data":               func(w *world, b backup) { w.restore(b) },
		"another cluster":          func(w *world, b backup) { w.restore(b); w.cluster++ },
		"another cluster, further": func(w *world, b backup) { w.restore(b); w.cluster++; w.revision += 1_000_000 },
		"an empty one":             func(w *world, b backup) { w.restore(backup{revision: 1}) },
		"without the key":          func(w *world, b backup) { w.restore(backup{revision: w.revision + 10}) },
		"seen but not yet read":    func(w *world, b backup) { w.restore(b); w.revision = 1_000 },
	} {
		t.Run(what, func(t *testing.T) {
			w := &world{cluster: 7, revision: 1}
			broken := map[*Keeper]int{}
			var one, two *Keeper
			one, two = w.keeper(func() { broken[one]++ }), w.keeper(func() { broken[two]++ })
			first, _ := read(t, one)
			read(t, two)
			b := w.backup()
			w.revision += 1_000
			read(t, two)
			w.revision += 500
			ghost := w.revision
			one.Saw(ghost)
			restore(w, b)
			e, revision := read(t, one)
			if e == first || e.After < ghost || revision <= e.After || broken[one] != 1 || one.Broken() != nil {
				t.Errorf("epoch %+v at %d, broken %d times, %v; the lost history ended at %d", e, revision, broken[one], one.Broken(), ghost)
			}
			if other, _ := read(t, two); other != e || broken[two] != 1 {
				t.Errorf("another process is in %+v, not %+v, and %d times broken", other, e, broken[two])
			}
			if again, _ := read(t, one); again != e || broken[one] != 1 {
				t.Errorf("the epoch does not last: %+v", again)
			}
		})
	}
}

func TestABreakIsNotForgottenByAFailure(t *testing.T) {
	w := &world{cluster: 7, revision: 1}
	k := w.keeper(nil)
	first, _ := read(t, k)
	b := w.backup()
	w.revision += 100
	read(t, k)
	w.restore(b)
	w.offline = true
	if e, _, err := k.Read(t.Context()); err == nil || k.Broken() == nil {
		t.Errorf("epoch %+v without a write", e)
	}
	w.offline, w.revision = false, w.revision+10_000 // others write meanwhile
	if e, _ := read(t, k); e == first || k.Broken() != nil {
		t.Errorf("the epoch is still %+v, %v", e, k.Broken())
	}
}

func TestManyFindTheSameBreak(t *testing.T) {
	w := &world{cluster: 7, revision: 1}
	keepers := make([]*Keeper, 8)
	for i := range keepers {
		keepers[i] = w.keeper(nil)
		read(t, keepers[i])
	}
	b := w.backup()
	w.revision += 1_000
	for i, k := range keepers {
		k.Saw(w.revision - int64(i))
	}
	w.mu.Lock()
	w.restore(b)
	w.mu.Unlock()
	var all sync.WaitGroup
	for _, k := range keepers {
		for range 3 {
			all.Go(func() {
				if _, _, err := k.Read(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	last, _ := read(t, keepers[0])
	for i, k := range keepers {
		if e, _ := read(t, k); e != last || e.After < 1_000 {
			t.Errorf("keeper %d is in %+v, not %+v", i, e, last)
		}
	}
}

// TestTooManyRevisionsToSkip: revisions of the epochs overlap, but the epoch is a new one.
func TestTooManyRevisionsToSkip(t *testing.T) {
	w := &world{cluster: 7, revision: 1}
	one, two := w.keeper(nil), w.keeper(nil)
	first, _ := read(t, one)
	b := w.backup()
	w.revision += 10 * maxRaise
	read(t, one)
	read(t, two)
	w.restore(b)
	e, _ := read(t, one)
	if e == first || e.After > maxRaise {
		t.Errorf("epoch %+v", e)
	}
	other, _ := read(t, two)
	if again, _ := read(t, one); again != other {
		t.Errorf("they do not agree: %+v and %+v", again, other)
	}
	if again, _ := read(t, two); again != other {
		t.Errorf("they do not come to rest: %+v and %+v", again, other)
	}
}

// TestNothingIsAcceptedDuringARaise: while one process raises the revision, it passes what others have seen last. None of
// them may take that for a continuation, however late it looks, and neither may one that starts.
func TestNothingIsAcceptedDuringARaise(t *testing.T) {
	w := &world{cluster: 7, revision: 1}
	var broken atomic.Int32
	one, frozen := w.keeper(nil), w.keeper(func() { broken.Add(1) })
	first, _ := read(t, one)
	read(t, frozen)
	b := w.backup()
	w.revision += 183
	read(t, one)
	_, seen := read(t, frozen)
	w.restore(b)
	var looked sync.Once
	type looking struct {
		Epoch
		err error
	}
	late := make(chan looking, 2)
	w.raised = func() {
		w.mu.Lock()
		passed := w.revision > seen
		w.mu.Unlock()
		if !passed {
			return
		}
		looked.Do(func() {
			for _, k := range []*Keeper{frozen, w.keeper(nil)} {
				w.mu.Lock()
				answer := &clientv3.GetResponse{Header: w.header(), Kvs: []*mvccpb.KeyValue{{Value: w.value, ModRevision: w.modified}}}
				w.mu.Unlock()
				found, err := parse(answer.Kvs)
				if err != nil {
					t.Error(err)
				}
				k.mu.Lock()
				known := k.known
				k.mu.Unlock()
				if k.accept(reading{known, seen, found, answer.Header.Revision, answer.Header.ClusterId}) {
					t.Errorf("%+v at %d is accepted during the raise", found, answer.Header.Revision)
				}
				go func() {
					e, _, err := k.Read(t.Context())
					late <- looking{e, err}
				}()
			}
		})
	}
	e, _ := read(t, one)
	for range 2 {
		if got := <-late; got.err != nil || got.Epoch == first || got.Pending {
			t.Errorf("a reader during the raise is in %+v, %v", got.Epoch, got.err)
		}
	}
	last, _ := read(t, one)
	if other, _ := read(t, frozen); other != last || broken.Load() == 0 || e == first || last.After <= seen {
		t.Errorf("in the end %+v and %+v, broken %d times", other, last, broken.Load())
	}
}

// TestARaiseIsContinued: a process that ends during the raise leaves a pending epoch, which the next one completes, also
// one that has seen nothing.
func TestARaiseIsContinued(t *testing.T) {
	w := &world{cluster: 7, revision: 1}
	one := w.keeper(nil)
	first, _ := read(t, one)
	b := w.backup()
	w.revision += 5_000
	_, seen := read(t, one)
	w.restore(b)
	w.offline = true
	if _, _, err := one.Read(t.Context()); err == nil {
		t.Fatal("the raise does not fail")
	}
	if left, err := parse([]*mvccpb.KeyValue{{Value: w.value}}); err != nil || !left.Pending || left.Target <= seen || left.ID == first.ID {
		t.Fatalf("it leaves %+v, %v", left, err)
	}
	w.offline = false
	next := w.keeper(nil)
	e, revision := read(t, next)
	if e.Pending || e.After <= seen || revision <= e.After || next.Broken() != nil {
		t.Errorf("the next process is in %+v at %d", e, revision)
	}
	if again, _ := read(t, one); again != e {
		t.Errorf("the first one is in %+v", again)
	}
}
