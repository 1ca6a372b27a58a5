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

// replicas starts some replicas and clients of all of them.
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
	return all, client
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
	for all[0].calls.Load() == 0 || all[1].calls.Load() == 0 { // both are connected
		if _, err := ask(t, method, client); err != nil {
			t.Fatal(err)
		}
	}
	all[0].frozen.Store(true)
	before := all[0].calls.Load()
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
	var group sync.WaitGroup
	for range 100 {
		group.Go(call)
	}
	group.Wait()
	if all[0].calls.Load() == before {
		t.Error("the frozen replica was never called: the test shows nothing")
	}
	t.Logf("the slowest of 110 calls took %v; %d of them reached the frozen replica", time.Duration(slowest.Load()), all[0].calls.Load()-before)
}

// TestWritesAreNotHedged: a write that is not answered is sent to no other replica.
func TestWritesAreNotHedged(t *testing.T) {
	all, client := replicas(t, 2)
	for _, r := range all {
		r.frozen.Store(true)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: "b"}
	_, _ = client.store.Create(ctx, services.CreateRequest{Key: key}) // it fails, or its outcome is determined
	// Further calls only determine the outcome of the first one.
	if n := all[0].writes.Load() + all[1].writes.Load(); n != 1 {
		t.Errorf("a write was sent %d times", n)
	}
}

// TestHedgesAreBounded: replicas that are all slow get few further calls.
func TestHedgesAreBounded(t *testing.T) {
	all, client := replicas(t, 2)
	for _, r := range all {
		r.frozen.Store(true)
	}
	const calls = 400
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for range calls {
		group.Go(func() { _, _ = client.authz.Authorize(ctx, services.Attributes{}) }) // ends with ctx
	}
	group.Wait()
	made := all[0].calls.Load() + all[1].calls.Load()
	if further := made - calls; further <= 0 || further > 100+calls/10 {
		t.Errorf("%d further calls beside %d", further, calls)
	}
}

// TestHedgedError: an error that a hub gives is the answer, and is not asked for again.
func TestHedgedError(t *testing.T) {
	all, client := replicas(t, 1)
	all[0].err = services.Expired("gone")
	if _, err := ask(t, "Replay", client); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("got %v", err)
	}
	if calls := all[0].calls.Load(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
