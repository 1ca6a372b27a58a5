package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/lossy"
)

// lostHold is how long a response is delayed before the connection breaks. etcd applies
// the transaction within this time.
const lostHold = 50 * time.Millisecond

// lossyBench is a store that reaches etcd over a lossy connection, and one that reaches
// it directly.
type lossyBench struct {
	etcd         *clientv3.Client
	link         *lossy.Proxy
	lossy, other *Store
}

func newLossyBench(t *testing.T) lossyBench {
	t.Helper()
	address := serveEtcd(t, func(*embed.Config) {})
	b := lossyBench{etcd: dial(t, address), link: lossy.New(t, address)}
	b.other = replica(t, b.etcd)
	// More than the default, so that a slow machine does not change the outcome.
	b.lossy = New(Config{Client: dial(t, b.link.Address()), Log: discard, Metrics: prometheus.NewRegistry(), SettleWithin: time.Minute})
	await(t, b.lossy)
	return b
}

// version returns the number of writes of an object since its creation.
func (b lossyBench) version(t *testing.T, name string) int64 {
	t.Helper()
	answer, err := b.etcd.Get(t.Context(), pod(name).Path())
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Kvs) == 0 {
		return 0
	}
	return answer.Kvs[0].Version
}

// write is one kind of write of an object. before and after are the version of the object
// before and after it.
type write struct {
	before, after int64
	do            func(s services.Store, o services.Object) (services.Object, error)
}

func storeWrites(t *testing.T) map[string]write {
	ctx := t.Context()
	return map[string]write{
		"create": {0, 1, func(s services.Store, o services.Object) (services.Object, error) {
			return s.Create(ctx, services.CreateRequest{Key: o.Key, Content: content(o.Key.Name, "mine")})
		}},
		"update": {1, 2, func(s services.Store, o services.Object) (services.Object, error) {
			return s.Update(ctx, services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: content(o.Key.Name, "mine")})
		}},
		"delete": {1, 0, func(s services.Store, o services.Object) (services.Object, error) {
			return s.Delete(ctx, services.DeleteRequest{Key: o.Key})
		}},
		"delete one revision": {1, 0, func(s services.Store, o services.Object) (services.Object, error) {
			return s.Delete(ctx, services.DeleteRequest{Key: o.Key, Revision: o.Revision})
		}},
	}
}

// prepare creates the objects that a write needs.
func (b lossyBench) prepare(t *testing.T, w write, name string) services.Object {
	t.Helper()
	if w.before == 0 {
		return services.Object{Key: pod(name)}
	}
	o := create(t, b.other, name)
	if _, err := b.lossy.Get(t.Context(), services.GetRequest{Key: o.Key}); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestLostAnswersAreFound loses etcd's responses to writes and to the first attempts to
// determine the outcome: every write is applied once and returns success.
func TestLostAnswersAreFound(t *testing.T) {
	b := newLossyBench(t)
	for verb, w := range storeWrites(t) {
		for lost := 1; lost <= 3; lost++ {
			t.Run(fmt.Sprintf("%s, %d answers", verb, lost), func(t *testing.T) {
				name := strings.ReplaceAll(verb, " ", "-") + strconv.Itoa(lost)
				o := b.prepare(t, w, name)
				before := b.link.Lost()
				for range lost {
					b.link.Lose(lossy.Fault{Match: pod(name).Path(), Hold: lostHold})
				}
				got, err := w.do(b.lossy, o)
				if err != nil || b.link.Lost() != before+lost {
					t.Fatalf("%v; %d of %d answers were lost", err, b.link.Lost()-before, lost)
				}
				if n := b.version(t, name); n != w.after {
					t.Errorf("the object has been written %d times, want %d", n, w.after)
				}
				if read, err := b.other.Get(t.Context(), services.GetRequest{Key: o.Key}); err == nil && read.Revision != got.Revision {
					t.Errorf("answered revision %d, it is %d", got.Revision, read.Revision)
				}
			})
		}
	}
}

// TestLostRequestsAreNotDone loses or delays requests before they reach etcd: they are
// never applied, and the error says so.
func TestLostRequestsAreNotDone(t *testing.T) {
	b := newLossyBench(t)
	for verb, w := range storeWrites(t) {
		for _, kind := range []lossy.Kind{lossy.Request, lossy.Late} {
			t.Run(fmt.Sprintf("%s, %d", verb, kind), func(t *testing.T) {
				name := fmt.Sprintf("%s-%d", strings.ReplaceAll(verb, " ", "-"), kind)
				o := b.prepare(t, w, name)
				b.link.Lose(lossy.Fault{Match: pod(name).Path(), Kind: kind})
				_, err := w.do(b.lossy, o)
				s := services.AsStatus(err)
				if !services.IsReason(err, services.ReasonServiceUnavailable) || s.Details == nil || s.Details.RetryAfterSeconds == 0 {
					t.Fatalf("a request that etcd did not get: %v, want an Unavailable", err)
				}
				if err := b.link.Deliver(); err != nil {
					t.Fatal(err)
				}
				// etcd applies an earlier request before these.
				for range 20 {
					if n := b.version(t, name); n != w.before {
						t.Fatalf("it was done nevertheless: written %d times", n)
					}
				}
				if _, err := w.do(b.lossy, o); err != nil {
					t.Errorf("asked for again: %v", err)
				}
			})
		}
	}
}

// TestLostAnswersAreFoundInHistory: other writers replace or delete the object before the
// loss of the response is detected.
func TestLostAnswersAreFoundInHistory(t *testing.T) {
	b := newLossyBench(t)
	others := map[string]func(t *testing.T, name string){
		"replaced": func(t *testing.T, name string) {
			o, err := b.other.Get(t.Context(), services.GetRequest{Key: pod(name)})
			if err != nil {
				o = create(t, b.other, name)
			}
			update(t, b.other, o, "theirs")
		},
		"removed": func(t *testing.T, name string) {
			if _, err := b.other.Delete(t.Context(), services.DeleteRequest{Key: pod(name)}); err != nil && !services.IsReason(err, services.ReasonNotFound) {
				t.Fatal(err)
			}
		},
		"made anew": func(t *testing.T, name string) {
			_, _ = b.other.Delete(t.Context(), services.DeleteRequest{Key: pod(name)})
			create(t, b.other, name)
		},
	}
	for verb, w := range storeWrites(t) {
		for what, change := range others {
			t.Run(verb+", "+what, func(t *testing.T) {
				name := strings.ReplaceAll(verb+"-"+what, " ", "-")
				o := b.prepare(t, w, name)
				b.link.Lose(lossy.Fault{Match: pod(name).Path(), Hold: 2 * lostHold})
				var got services.Object
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					got, err = w.do(b.lossy, o)
				}()
				for b.version(t, name) == w.before {
					select {
					case <-done:
						t.Fatalf("it ended before etcd had it: %v", err)
					default:
					}
				}
				written, read := b.other.Revision(t.Context(), pod("").GroupResource)
				if read != nil {
					t.Fatal(read)
				}
				change(t, name)
				if <-done; err != nil {
					t.Fatalf("it was done, then %s: %v", what, err)
				}
				if got.Revision <= o.Revision || got.Revision > written {
					t.Errorf("answered revision %d, want one after %d and not after %d", got.Revision, o.Revision, written)
				}
			})
		}
	}
}

// TestLostRequestsLoseToOthers loses a request that conflicts with another writer: the
// result is the same as without the loss.
func TestLostRequestsLoseToOthers(t *testing.T) {
	b := newLossyBench(t)
	for verb, want := range map[string]string{"create": services.ReasonAlreadyExists, "update": services.ReasonConflict, "delete one revision": services.ReasonConflict} {
		t.Run(verb, func(t *testing.T) {
			w, name := storeWrites(t)[verb], strings.ReplaceAll(verb, " ", "-")
			o := b.prepare(t, w, name)
			b.link.Lose(lossy.Fault{Match: pod(name).Path(), Kind: lossy.Late})
			if w.before == 0 {
				create(t, b.other, name)
			} else {
				update(t, b.other, o, "theirs")
			}
			if _, err := w.do(b.lossy, o); !services.IsReason(err, want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// TestUnknownOutcomeIsReported disconnects etcd with the response: the error says that the
// outcome is unknown, and has no Retry-After.
func TestUnknownOutcomeIsReported(t *testing.T) {
	address := serveEtcd(t, func(*embed.Config) {})
	link := lossy.New(t, address)
	s := New(Config{Client: dial(t, link.Address()), Log: discard, Metrics: prometheus.NewRegistry(), SettleWithin: 300 * time.Millisecond})
	await(t, s)
	direct := replica(t, dial(t, address))
	for verb, w := range storeWrites(t) {
		t.Run(verb, func(t *testing.T) {
			name := strings.ReplaceAll(verb, " ", "-")
			o := services.Object{Key: pod(name)}
			if w.before > 0 {
				o = create(t, direct, name)
			}
			// The store's mirror then has the object.
			if _, err := s.List(t.Context(), services.ListRequest{GroupResource: pods}); err != nil {
				t.Fatal(err)
			}
			link.Lose(lossy.Fault{Match: pod(name).Path(), Hold: time.Hour})
			before, errs := link.Lost(), make(chan error)
			go func() {
				_, err := w.do(s, o)
				errs <- err
			}()
			for link.Lost() == before {
				runtime.Gosched()
			}
			link.Cut()
			err := <-errs
			link.Heal()
			status := services.AsStatus(err)
			if status == nil || status.Code != 504 || status.Details != nil && status.Details.RetryAfterSeconds != 0 || !strings.Contains(err.Error(), "outcome of the write is not known") {
				t.Errorf("got %+v", status)
			}
		})
	}
}

// TestACompactedHistoryLeavesTheOutcomeUnknown compacts the history that determines the
// outcome.
func TestACompactedHistoryLeavesTheOutcomeUnknown(t *testing.T) {
	b := newLossyBench(t)
	o := create(t, b.other, "a")
	a := services.Attempt{ID: services.NewWriteID(), Since: o.Revision}
	if _, err := b.other.Update(t.Context(), services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: content("a", "1"), Attempt: a}); err != nil {
		t.Fatal(err)
	}
	newest, err := b.other.Get(t.Context(), services.GetRequest{Key: o.Key})
	if err != nil {
		t.Fatal(err)
	}
	compact(t, b.etcd, update(t, b.other, newest, "2").Revision)
	a.Repeated = true
	_, err = b.other.Update(t.Context(), services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: content("a", "1"), Attempt: a})
	if s := services.AsStatus(err); s == nil || s.Code != 504 || s.Details != nil {
		t.Errorf("got %+v", s)
	}
}

// TestACancelledCallerDoesNotLoseTheOutcome cancels requests while they are in flight.
func TestACancelledCallerDoesNotLoseTheOutcome(t *testing.T) {
	b := newLossyBench(t)
	for i := range 20 {
		name := fmt.Sprintf("c%d", i)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
		_, err := b.lossy.Create(ctx, services.CreateRequest{Key: pod(name), Content: content(name, "0")})
		cancel()
		switch n := b.version(t, name); {
		case err == nil && n == 1, services.IsReason(err, services.ReasonServiceUnavailable) && n == 0:
		default:
			t.Errorf("%v, and it was written %d times", err, n)
		}
	}
}

// TestACounterCountsEveryLostIncrement increments a counter by compare-and-swap while
// responses and requests are lost. It ends at the number of acknowledged increments;
// those with an unknown outcome may have been applied.
func TestACounterCountsEveryLostIncrement(t *testing.T) {
	b := newLossyBench(t)
	create(t, b.other, "counter")
	const writers, rounds = 8, 12
	var acked, unknown atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range rounds {
				b.increment(t, &acked, &unknown)
			}
		})
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticks.C:
				if !b.link.Armed() {
					b.link.Lose(lossy.Fault{Match: pod("counter").Path(), After: rand.IntN(10), Kind: lossy.Kind(rand.IntN(2)),
						Hold: time.Duration(rand.IntN(40)) * time.Millisecond})
				}
			}
		}
	}()
	all.Wait()
	close(stop)
	<-stopped
	o, err := b.other.Get(t.Context(), services.GetRequest{Key: pod("counter")})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.ParseInt(o.Labels["value"], 10, 64)
	t.Logf("%d answers or requests lost; the counter is at %d, %d acknowledged, %d unknown", b.link.Lost(), n, acked.Load(), unknown.Load())
	if n < acked.Load() || n > acked.Load()+unknown.Load() {
		t.Errorf("the counter is at %d after %d acknowledged and %d unknown increments", n, acked.Load(), unknown.Load())
	}
	if b.link.Lost() == 0 || acked.Load() != writers*rounds-unknown.Load() {
		t.Errorf("%d increments acknowledged, %d unknown, of %d; %d losses", acked.Load(), unknown.Load(), writers*rounds, b.link.Lost())
	}
}

// increment retries until its increment is acknowledged or its outcome is unknown.
func (b lossyBench) increment(t *testing.T, acked, unknown *atomic.Int64) {
	for t.Context().Err() == nil {
		o, err := b.lossy.Get(t.Context(), services.GetRequest{Key: pod("counter")})
		if err != nil {
			continue
		}
		n, _ := strconv.Atoi(o.Labels["value"])
		_, err = b.lossy.Update(t.Context(), services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: content("counter", strconv.Itoa(n+1))})
		switch {
		case err == nil:
			acked.Add(1)
			return
		case services.IsReason(err, services.ReasonTimeout):
			unknown.Add(1)
			return
		case !services.IsReason(err, services.ReasonConflict) && !services.IsReason(err, services.ReasonServiceUnavailable):
			t.Error(err)
			return
		}
	}
}

// TestMarksAreNotObjects: marks are not under the prefix of the objects, and their number
// does not grow with deletions.
func TestMarksAreNotObjects(t *testing.T) {
	client := openEtcd(t)
	s := replica(t, client)
	for i := range 600 {
		o := create(t, s, fmt.Sprintf("p%d", i))
		if strings.Contains(string(o.JSON), `"w"`) {
			t.Fatalf("the ID of the write is shown: %s", o.JSON)
		}
		if _, err := s.Delete(t.Context(), services.DeleteRequest{Key: o.Key}); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := client.Get(t.Context(), "/portico/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || answer.Count > 256 {
		t.Errorf("%d keys are left, %v", answer.Count, err)
	}
	if page := list(t, s, services.ListRequest{}); len(page.Objects) != 0 {
		t.Errorf("listed %d objects", len(page.Objects))
	}
}

// TestNoSpaceIsNoLie fills etcd up to its quota. etcd applies the first write that exceeds
// it although it returns an error. The store must return success, and accept deletions.
func TestNoSpaceIsNoLie(t *testing.T) {
	client := dial(t, serveEtcd(t, func(c *embed.Config) { c.QuotaBackendBytes = 4 << 20 }))
	s := replica(t, client)
	large := strings.Repeat("x", 100<<10)
	acked, refusals := 0, 0
	for i := 0; refusals < 5 && i < 500; i++ {
		name := fmt.Sprintf("p%d", i)
		_, err := s.Create(t.Context(), services.CreateRequest{Key: pod(name), Content: content(name, large)})
		answer, readError := client.Get(t.Context(), pod(name).Path())
		if readError != nil {
			t.Fatal(readError)
		}
		switch {
		case err == nil && answer.Count == 1:
			acked++
		case services.IsReason(err, services.ReasonInsufficientStorage) && answer.Count == 0:
			refusals++
		default:
			t.Fatalf("%v, and there are %d", err, answer.Count)
		}
	}
	if refusals == 0 {
		t.Fatal("etcd does not fill up")
	}
	for i := range acked {
		o, err := s.Delete(t.Context(), services.DeleteRequest{Key: pod(fmt.Sprintf("p%d", i))})
		if err != nil || o.Revision == 0 {
			t.Fatalf("deleting without space: %v", err)
		}
	}
	if page := list(t, s, services.ListRequest{}); len(page.Objects) != 0 {
		t.Errorf("%d objects are left", len(page.Objects))
	}
}
