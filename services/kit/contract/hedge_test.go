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
)

// replica is a watch hub that answers with its number, or not at all.
type replica struct {
	services.WatchHub
	number int64
	frozen atomic.Bool
	calls  atomic.Int64
	err    error
}

func (r *replica) Replay(ctx context.Context, _ services.ReplayRequest) (services.Replay, error) {
	r.calls.Add(1)
	if r.frozen.Load() {
		<-ctx.Done()
	}
	return services.Replay{Through: r.number}, r.err
}

// replicas starts some watch hubs and a client of all of them.
func replicas(t *testing.T, n int) (all []*replica, client services.WatchHub) {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	start := func(s run.Service, args ...string) *run.Running {
		files, err := authority.Issue(t.TempDir(), s.Name)
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
		running := start(run.Service{Name: "watch-hub", Offers: []run.Dependency{contract.WatchHub}, Start: func(_ context.Context, n *run.Node) error {
			contract.WatchHub.Offer(n, r)
			return nil
		}}, "--rpc-address=127.0.0.1:0")
		if addresses != "" {
			addresses += ","
		}
		addresses += running.RPCAddress()
	}
	start(run.Service{Name: "frontdoor", Needs: []run.Dependency{contract.WatchHub}, Start: func(ctx context.Context, n *run.Node) (err error) {
		client, err = contract.WatchHub.Use(ctx, n)
		return err
	}}, "--watch-hub-address="+addresses)
	return all, client
}

func replay(t *testing.T, client services.WatchHub) (services.Replay, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return client.Replay(ctx, services.ReplayRequest{After: 1})
}

// TestFrozenReplica: of several hubs one accepts calls and never answers. Every call is
// answered by another one, those that many make at a time too.
func TestFrozenReplica(t *testing.T) {
	all, client := replicas(t, 2)
	for all[0].calls.Load() == 0 || all[1].calls.Load() == 0 { // both are connected
		if _, err := replay(t, client); err != nil {
			t.Fatal(err)
		}
	}
	all[0].frozen.Store(true)
	before := all[0].calls.Load()
	var slowest atomic.Int64
	ask := func() {
		began := time.Now()
		got, err := replay(t, client)
		if err != nil || got.Through != all[1].number {
			t.Errorf("got %+v, %v", got, err)
		}
		for took := int64(time.Since(began)); ; {
			if now := slowest.Load(); took <= now || slowest.CompareAndSwap(now, took) {
				return
			}
		}
	}
	for range 10 {
		ask()
	}
	var group sync.WaitGroup
	for range 100 {
		group.Go(ask)
	}
	group.Wait()
	if all[0].calls.Load() == before {
		t.Error("the frozen hub was never asked: the test shows nothing")
	}
	t.Logf("the slowest of 110 calls took %v; %d of them reached the frozen hub", time.Duration(slowest.Load()), all[0].calls.Load()-before)
}

// TestHedgedError: an error that a hub gives is the answer, and is not asked for again.
func TestHedgedError(t *testing.T) {
	all, client := replicas(t, 1)
	all[0].err = services.Expired("gone")
	if _, err := replay(t, client); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("got %v", err)
	}
	if calls := all[0].calls.Load(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
