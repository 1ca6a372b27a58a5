package store

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/lossy"
)

const (
	// lostWithin is how long requests may wait for an unresponsive etcd, which is known to be one
	// after two seconds: without that a read would wait for ten, and a write for ever. atOnce is
	// how long they may take once it is known: one that was sent would wait for two seconds.
	// backWithin is how long the store may take to detect that etcd is back. All are generous for
	// slow machines.
	lostWithin = 8 * time.Second
	atOnce     = 1500 * time.Millisecond
	backWithin = 20 * time.Second
)

// outages are the ways in which etcd can become unavailable, and recover.
func outages(link *lossy.Proxy) map[string][2]func() {
	return map[string][2]func(){
		"paused":      {link.BlackHole, link.Heal},
		"unreachable": {link.Cut, link.Heal},
	}
}

// TestRequestsDoNotWaitForAnEtcdThatIsAway disconnects etcd while a read waits:
// most-recent reads fail, writes fail without being sent, other reads still work, and
// everything recovers with etcd.
func TestRequestsDoNotWaitForAnEtcdThatIsAway(t *testing.T) {
	address := serveEtcd(t, func(*embed.Config) {})
	link := lossy.New(t, address)
	registry := prometheus.NewRegistry()
	s := New(Config{Client: dial(t, link.Address()), Log: discard, Metrics: registry})
	await(t, s)
	direct := replica(t, dial(t, address))
	o := create(t, s, "held")
	if _, err := s.Get(t.Context(), services.GetRequest{Key: o.Key}); err != nil { // so that it is in the mirror
		t.Fatal(err)
	}
	for what, outage := range outages(link) {
		t.Run(what, func(t *testing.T) {
			outage[0]()
			began := time.Now()
			for _, err := s.Get(t.Context(), services.GetRequest{Key: o.Key}); err == nil; {
				_, err = s.Get(t.Context(), services.GetRequest{Key: o.Key})
			}
			took := time.Since(began)
			if t.Logf("a read has waited %v for etcd", took); took > lostWithin {
				t.Errorf("that is more than %v", lostWithin)
			}
			awaitAway(t, s)
			refusesAtOnce(t, s, registry, o)
			goesOn(t, s, o)
			// Revisions that are not in the mirror require etcd.
			for _, r := range []services.ListRequest{{Read: services.Read{Mode: services.Exact, Revision: 1}}, {Read: services.Read{Mode: services.NotOlderThan, Revision: 1 << 40}}} {
				r.GroupResource = pods
				_, err := s.List(t.Context(), r)
				unavailable(t, fmt.Sprint("a list of ", r.Read), err)
			}
			if up := metric(t, registry, "portico_store_etcd_up"); up != 0 {
				t.Errorf("the metrics say that etcd is there: %v", up)
			}
			if refused := metric(t, registry, "portico_store_refused_requests_total"); refused < 7 {
				t.Errorf("%v refused requests are counted, want at least 7", refused)
			}
			outage[1]()
			awaitThere(t, s)
			for verb, w := range storeWrites(t) {
				name := strings.ReplaceAll(verb+"-"+what, " ", "-")
				o := services.Object{Key: pod(name)}
				if w.before > 0 {
					o = create(t, s, name)
				}
				if _, err := w.do(s, o); err != nil {
					t.Errorf("%s after etcd is back: %v", verb, err)
				}
			}
			if _, err := direct.Get(t.Context(), services.GetRequest{Key: pod("refused")}); !services.IsReason(err, services.ReasonNotFound) {
				t.Errorf("a write that was refused: %v", err)
			}
			if metric(t, registry, "portico_store_etcd_up") != 1 {
				t.Error("the metrics say that etcd is still away")
			}
		})
	}
}

// awaitAway waits until the store has detected that etcd is unavailable.
func awaitAway(t *testing.T, s *Store) {
	t.Helper()
	began := time.Now()
	select {
	case <-s.main.mirror.Contact().Away():
		t.Logf("away after another %v", time.Since(began))
	case <-time.After(lostWithin):
		t.Fatalf("etcd is not known to be away after %v", time.Since(began))
	}
}

// awaitThere waits until the store serves most-recent reads.
func awaitThere(t *testing.T, s *Store) {
	t.Helper()
	began := time.Now()
	for {
		_, err := s.Revision(t.Context(), pod("").GroupResource)
		took := time.Since(began)
		if err == nil {
			t.Logf("back after %v", took)
			return
		}
		if took > backWithin {
			t.Fatalf("%v after etcd came back: %v", took, err)
		}
		runtime.Gosched()
	}
}

func unavailable(t *testing.T, what string, err error) {
	t.Helper()
	status := services.AsStatus(err)
	if status == nil || status.Code != 503 || status.Details == nil || status.Details.RetryAfterSeconds == 0 || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("%s: %+v, want a 503 about etcd", what, status)
	}
}

// refusesAtOnce checks that requests that require etcd fail at once, before they are sent.
func refusesAtOnce(t *testing.T, s *Store, registry *prometheus.Registry, o services.Object) {
	t.Helper()
	ask := func(what string, f func() error) {
		began, before := time.Now(), metric(t, registry, "portico_store_refused_requests_total")
		err := f()
		if took := time.Since(began); took > atOnce {
			t.Errorf("%s took %v", what, took)
		}
		if metric(t, registry, "portico_store_refused_requests_total") == before {
			t.Errorf("%s was not refused", what)
		}
		unavailable(t, what, err)
	}
	for verb, w := range storeWrites(t) {
		object := o
		if w.before == 0 {
			object = services.Object{Key: pod("refused")}
		}
		ask(verb, func() error {
			_, err := w.do(s, object)
			return err
		})
	}
	ask("get", func() error {
		_, err := s.Get(t.Context(), services.GetRequest{Key: o.Key})
		return err
	})
	ask("list", func() error {
		_, err := s.List(t.Context(), services.ListRequest{GroupResource: pods})
		return err
	})
	ask("revision", func() error {
		_, err := s.Revision(t.Context(), pod("").GroupResource)
		return err
	})
}

// goesOn checks that reads from the mirror still work.
func goesOn(t *testing.T, s *Store, o services.Object) {
	t.Helper()
	for _, read := range []services.Read{{Mode: services.AnyRevision}, {Mode: services.NotOlderThan, Revision: o.Revision}} {
		if got, err := s.Get(t.Context(), services.GetRequest{Key: o.Key, Read: read}); err != nil || got.Revision < o.Revision {
			t.Errorf("a read %+v without etcd: revision %d, %v", read, got.Revision, err)
		}
	}
}

// TestWriteInFlightWhenEtcdHangs sends writes that etcd receives, and delays its responses:
// the outcome is determined if etcd is back in time, and is unknown otherwise. The error
// never says that the write was not applied.
func TestWriteInFlightWhenEtcdHangs(t *testing.T) {
	address := serveEtcd(t, func(*embed.Config) {})
	link := lossy.New(t, address)
	direct := replica(t, dial(t, address))
	for _, returns := range []bool{true, false} {
		t.Run(fmt.Sprintf("etcd returns: %v", returns), func(t *testing.T) {
			within := time.Second
			if returns {
				within = time.Minute
			}
			s := New(Config{Client: dial(t, link.Address()), Log: discard, Metrics: prometheus.NewRegistry(), SettleWithin: within})
			await(t, s)
			name := fmt.Sprintf("written-%v", returns)
			link.Lose(lossy.Fault{Match: pod(name).Path(), Hold: time.Hour})
			before, errs := link.Lost(), make(chan error)
			go func() {
				_, err := s.Create(t.Context(), services.CreateRequest{Key: pod(name), Content: content(name, "0")})
				errs <- err
			}()
			for link.Lost() == before {
				runtime.Gosched()
			}
			link.BlackHole()
			defer link.Heal()
			awaitAway(t, s)
			if returns {
				link.Reset() // muted connections stay muted
				link.Heal()
			}
			select {
			case err := <-errs:
				switch {
				case returns && err != nil:
					t.Errorf("etcd has done it and is back: %v", err)
				case !returns && !services.IsReason(err, services.ReasonTimeout):
					t.Errorf("got %v, want an unknown outcome", err)
				}
			case <-time.After(lostWithin + 10*time.Second):
				t.Fatal("the write waits for etcd")
			}
			if _, err := direct.Get(t.Context(), services.GetRequest{Key: pod(name)}); err != nil {
				t.Errorf("etcd had the write: %v", err)
			}
		})
	}
}

// TestRepeatedWriteHasUnknownOutcome repeats an earlier attempt while etcd is unavailable:
// its outcome is unknown.
func TestRepeatedWriteHasUnknownOutcome(t *testing.T) {
	link := lossy.New(t, serveEtcd(t, func(*embed.Config) {}))
	s := New(Config{Client: dial(t, link.Address()), Log: discard, Metrics: prometheus.NewRegistry(), SettleWithin: 300 * time.Millisecond})
	await(t, s)
	a := services.Attempt{ID: services.NewWriteID(), Since: 1}
	if _, err := s.Create(t.Context(), services.CreateRequest{Key: pod("a"), Content: content("a", "0"), Attempt: a}); err != nil {
		t.Fatal(err)
	}
	link.BlackHole()
	awaitAway(t, s)
	a.Repeated = true
	ctx, cancel := context.WithTimeout(t.Context(), lostWithin)
	defer cancel()
	_, err := s.Create(ctx, services.CreateRequest{Key: pod("a"), Content: content("a", "0"), Attempt: a})
	if status := services.AsStatus(err); status == nil || status.Code != 504 || status.Details != nil && status.Details.RetryAfterSeconds != 0 {
		t.Errorf("got %+v, want an unknown outcome", status)
	}
}

// metric returns the sum of all series of a gauge or counter.
func metric(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
