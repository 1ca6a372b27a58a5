package contract_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
)

// replica is a watch hub, a store and an authz that answer with its number, or not at all.
type replica struct {
	services.WatchHub
	services.Store
	services.Authz
	number int64
	frozen atomic.Bool
	calls  atomic.Int64
	writes atomic.Int64 // first attempts
	err    error
}

func (r *replica) answer(ctx context.Context) (int64, error) {
	r.calls.Add(1)
	if r.frozen.Load() {
		<-ctx.Done()
	}
	return r.number, r.err
}

func (r *replica) Replay(ctx context.Context, _ services.ReplayRequest) (services.Replay, error) {
	number, err := r.answer(ctx)
	return services.Replay{Through: number}, err
}

func (r *replica) Revision(ctx context.Context, _ resource.GroupResource) (int64, error) {
	return r.answer(ctx)
}

func (r *replica) Create(ctx context.Context, q services.CreateRequest) (services.Object, error) {
	if !q.Attempt.Repeated {
		r.writes.Add(1)
	}
	number, err := r.answer(ctx)
	return services.Object{Key: q.Key, Revision: number}, err
}

func (r *replica) Authorize(ctx context.Context, _ services.Attributes) (services.Decision, error) {
	number, err := r.answer(ctx)
	return services.Decision{Revision: number}, err
}

// clients are the clients of some replicas.
type clients struct {
	hub   services.WatchHub
	store services.Store
	authz services.Authz
}

// replicas starts some replicas and clients of all of them, and waits until each client has called
// each replica.
func replicas(t *testing.T, n int) (all []*replica, client clients) {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	start := func(s run.Service, names []string, args ...string) *run.Running {
		files, err := authority.Issue(t.TempDir(), names...)
		if err != nil {
			t.Fatal(err)
		}
		running, err := run.Start(t.Context(), run.App{Name: s.Name, Services: []run.Service{s}}, append(append(args, "--log-level=error"), files.Flags()...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(running.Stop)
		return running
	}
	var addresses string
	for i := range n {
		r := &replica{number: int64(i + 1)}
		all = append(all, r)
		running := start(run.Service{Name: "all", Offers: []run.Dependency{contract.WatchHub, contract.Store, contract.Authz}, Start: func(_ context.Context, n *run.Node) error {
			contract.WatchHub.Offer(n, r)
			contract.Store.Offer(n, r)
			contract.Authz.Offer(n, r)
			return nil
		}}, []string{"watch-hub", "store", "authz"}, "--rpc-address=127.0.0.1:0")
		if addresses != "" {
			addresses += ","
		}
		addresses += running.RPCAddress()
	}
	start(run.Service{Name: "frontdoor", Needs: []run.Dependency{contract.WatchHub, contract.Store, contract.Authz}, Start: func(ctx context.Context, n *run.Node) (err error) {
		if client.hub, err = contract.WatchHub.Use(ctx, n); err != nil {
			return err
		}
		if client.store, err = contract.Store.Use(ctx, n); err != nil {
			return err
		}
		client.authz, err = contract.Authz.Use(ctx, n)
		return err
	}}, []string{"frontdoor"}, "--watch-hub-address="+addresses, "--store-address="+addresses, "--authz-address="+addresses)
	for _, method := range []string{"Replay", "Revision", "Authorize"} {
		connected(t, method, all, client)
	}
	return all, client
}

func connected(t *testing.T, method string, all []*replica, client clients) {
	t.Helper()
	called := map[int64]bool{}
	var err error
	for late := time.Now().Add(time.Minute); len(called) < len(all); {
		var number int64
		if number, err = ask(t, method, client); err == nil {
			called[number] = true
		}
		if time.Now().After(late) {
			t.Fatalf("%s: %d of %d replicas are connected: %v", method, len(called), len(all), err)
		}
	}
	for _, r := range all {
		r.calls.Store(0)
	}
}

// ask makes a call that changes nothing, and returns the number of the replica that answers.
func ask(t *testing.T, method string, client clients) (number int64, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	switch method {
	case "Replay":
		var got services.Replay
		got, err = client.hub.Replay(ctx, services.ReplayRequest{After: 1})
		number = got.Through
	case "Revision":
		number, err = client.store.Revision(ctx, resource.GroupResource{})
	case "Authorize":
		var got services.Decision
		got, err = client.authz.Authorize(ctx, services.Attributes{})
		number = got.Revision
	}
	return number, err
}

// TestFrozenReplica: of several replicas one accepts calls and never answers. Every call that
// changes nothing is answered by another one, those that many make at a time too.
func TestFrozenReplica(t *testing.T) {
	for _, method := range []string{"Replay", "Revision", "Authorize"} {
		t.Run(method, func(t *testing.T) { oneIsFrozen(t, method) })
	}
}

func oneIsFrozen(t *testing.T, method string) {
	all, client := replicas(t, 2)
	all[0].frozen.Store(true)
	var slowest atomic.Int64
	call := func() {
		began := time.Now()
		got, err := ask(t, method, client)
		if err != nil || got != all[1].number {
			t.Errorf("got %+v, %v", got, err)
		}
		for took := int64(time.Since(began)); ; {
			if now := slowest.Load(); took <= now || slowest.CompareAndSwap(now, took) {
				return
			}
		}
	}
	for range 10 {
		call()
	}
	// On a slow machine each call may be made to another replica twice: for so many calls the budget
	// is large enough then too.
	var group sync.WaitGroup
	for range 40 {
		group.Go(call)
	}
	group.Wait()
	if all[0].calls.Load() == 0 {
		t.Error("the frozen replica was never called: the test shows nothing")
	}
	t.Logf("the slowest of 50 calls took %v; %d of them reached the frozen replica", time.Duration(slowest.Load()), all[0].calls.Load())
}

// TestWritesAreNotHedged: a write that is not answered is sent to no other replica.
func TestWritesAreNotHedged(t *testing.T) {
	all, client := replicas(t, 2)
	for _, r := range all {
		r.frozen.Store(true)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: "b"}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = client.store.Create(ctx, services.CreateRequest{Key: key}) // it fails, or its outcome is determined
	}()
	sent := func() int64 { return all[0].writes.Load() + all[1].writes.Load() }
	settled(t, 1, sent)
	cancel()
	<-ended
	// Further calls only determine the outcome of the first one.
	if n := sent(); n != 1 {
		t.Errorf("a write was sent %d times", n)
	}
}

// settled waits until a number is reached, and then until it has not grown for a second, in which
// a call that waits is made to other replicas several times.
func settled(t *testing.T, least int64, count func() int64) (n int64) {
	t.Helper()
	before, late, again := int64(-1), time.After(time.Minute), time.NewTicker(time.Second)
	defer again.Stop()
	for now := count(); now < least || now != before; now = count() {
		before = now
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("there are %d calls, want at least %d", now, least)
		}
	}
	return before
}

// TestHedgesAreBounded: replicas that are all slow get few further calls.
func TestHedgesAreBounded(t *testing.T) {
	all, client := replicas(t, 2)
	for _, r := range all {
		r.frozen.Store(true)
	}
	const calls = 400
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for range calls {
		group.Go(func() { _, _ = client.authz.Authorize(ctx, services.Attributes{}) }) // ends with ctx
	}
	made := settled(t, calls+1, func() int64 { return all[0].calls.Load() + all[1].calls.Load() })
	cancel()
	group.Wait()
	if further := made - calls; further <= 0 || further > 100+calls/10 {
		t.Errorf("%d further calls beside %d", further, calls)
	}
}

// TestHedgedError: an error that a hub gives is the answer, and is not asked for again.
func TestHedgedError(t *testing.T) {
	all, client := replicas(t, 1)
	all[0].err = services.Expired("gone")
	least := int64(1 << 40)
	for n := 0; n < 20 && least > 1; n++ { // on a busy machine an answer may take as long as a hedged one
		before := all[0].calls.Load()
		if _, err := ask(t, "Replay", client); !services.IsReason(err, services.ReasonExpired) {
			t.Errorf("got %v", err)
		}
		least = min(least, all[0].calls.Load()-before)
	}
	if least != 1 {
		t.Errorf("%d calls", least)
	}
}
