package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

var pods = resource.GroupResource{Resource: "pods"}

func pod(name string) resource.Key {
	return resource.Key{GroupResource: pods, Namespace: "ns", Name: name}
}

func newReader(etcd *testbed.Etcd) *Reader {
	return NewReader(etcd.Client, nil, slog.New(slog.DiscardHandler))
}

func kinds(run Run) (list []string) {
	for _, c := range run.Changes {
		list = append(list, c.Type.String())
	}
	return list
}

// onBoth runs a test with an etcd in this process and over a connection, which have
// different implementations of reading past changes.
func onBoth(t *testing.T, test func(t *testing.T, etcd *testbed.Etcd)) {
	t.Run("in process", func(t *testing.T) { test(t, testbed.StartEtcd(t)) })
	t.Run("remote", func(t *testing.T) { test(t, testbed.StartRemoteEtcd(t)) })
}

func TestPast(t *testing.T) { onBoth(t, testPast) }

func testPast(t *testing.T, etcd *testbed.Etcd) {
	reader := newReader(etcd)
	first := etcd.Write(pod("a"), "one")
	etcd.Write(pod("a"), "two")
	deleted := etcd.Remove(pod("a"))
	quiet := etcd.Write(resource.Key{GroupResource: resource.GroupResource{Resource: "podsandmore"}, Name: "b"}, "one")
	last := etcd.Write(pod("c"), "three")
	for _, c := range []struct {
		what    string
		query   Query
		kinds   string
		through int64
	}{
		{"everything", Query{After: 0, Through: last, Limit: 10, Bytes: 1 << 20}, "[ADDED MODIFIED DELETED ADDED]", last},
		{"after the first", Query{After: first, Through: last, Limit: 10, Bytes: 1 << 20}, "[MODIFIED DELETED ADDED]", last},
		{"through a quiet revision", Query{After: 0, Through: quiet, Limit: 10, Bytes: 1 << 20}, "[ADDED MODIFIED DELETED]", quiet},
		{"nothing", Query{After: deleted, Through: quiet, Limit: 10, Bytes: 1 << 20}, "[]", quiet},
		{"by number", Query{After: 0, Through: last, Limit: 2, Bytes: 1 << 20}, "[ADDED MODIFIED]", first + 1},
		{"by bytes", Query{After: 0, Through: last, Limit: 10, Bytes: 1}, "[ADDED]", first},
	} {
		c.query.GroupResource = pods
		run, err := reader.Past(t.Context(), c.query)
		if err != nil || fmt.Sprint(kinds(run)) != c.kinds || run.Through != c.through {
			t.Errorf("%s: %v through %d, %v; want %s through %d", c.what, kinds(run), run.Through, err, c.kinds, c.through)
		}
	}
}

// TestFormerStates: a change has the previous object if a selector may no longer match.
func TestFormerStates(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	first := etcd.Write(pod("a"), "one")
	etcd.Write(pod("a"), "one")
	labelled := etcd.Write(pod("a"), "two")
	run, err := newReader(etcd).Past(t.Context(), Query{GroupResource: pods, After: first, Through: labelled, Limit: 10, Bytes: 1 << 20})
	if err != nil || len(run.Changes) != 2 {
		t.Fatalf("%v, %v", kinds(run), err)
	}
	if old := run.Changes[0].OldJSON; old != nil {
		t.Errorf("selectors see no difference, but the former state is carried: %s", old)
	}
	old := string(run.Changes[1].OldJSON)
	if want := fmt.Sprintf(`"resourceVersion":"%d"`, labelled); !strings.Contains(old, want) || !strings.Contains(old, `"one"`) {
		t.Errorf("former state %s, want that of the value one with %s", old, want)
	}
}

func TestPastThatIsGone(t *testing.T) { onBoth(t, testPastThatIsGone) }

func testPastThatIsGone(t *testing.T, etcd *testbed.Etcd) {
	reader := newReader(etcd)
	first := etcd.Write(pod("a"), "one")
	deleted := etcd.Remove(pod("a"))
	last := etcd.Write(pod("b"), "two")
	if _, err := etcd.Compact(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	query := Query{GroupResource: pods, Through: last, Limit: 10, Bytes: 1 << 20}
	// etcd accepts a watch that starts at the deletion, but does not send the deletion.
	for _, after := range []int64{0, first - 1, first, deleted - 1} {
		query.After = after
		var compacted Compacted
		if run, err := reader.Past(t.Context(), query); !errors.As(err, &compacted) {
			t.Errorf("after %d: %v, %v; want Compacted", after, kinds(run), err)
		}
	}
	query.After = deleted
	if run, err := reader.Past(t.Context(), query); err != nil || len(run.Changes) != 1 {
		t.Errorf("after what is gone: %v, %v", kinds(run), err)
	}
}

func TestUnreadableValuesAreLeftOut(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	reader := newReader(etcd)
	for key, value := range map[string]string{pod("strange").Path(): "strange", resource.Root + "strange": "strange"} {
		if _, err := etcd.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	last := etcd.Write(pod("a"), "one")
	var heard []services.Change
	for response := range reader.Follow(t.Context(), 0, time.Second) {
		run, err := reader.Read(response)
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, run.Changes...)
		if run.Through >= last {
			break
		}
	}
	if len(heard) != 1 || heard[0].Object.Key != pod("a") {
		t.Errorf("heard %+v", heard)
	}
}

func TestMissingPreviousMeansCompacted(t *testing.T) {
	reader := NewReader(nil, nil, slog.New(slog.DiscardHandler))
	var compacted Compacted
	for _, kind := range []mvccpb.Event_EventType{mvccpb.Event_PUT, mvccpb.Event_DELETE} {
		_, err := reader.Read(clientv3.WatchResponse{Events: []*clientv3.Event{{
			Type: kind, Kv: &mvccpb.KeyValue{Key: []byte(pod("a").Path()), CreateRevision: 1, ModRevision: 7, Value: testbed.Record(pod("a"), "one")},
		}}})
		if !errors.As(err, &compacted) || compacted.Through != 7 {
			t.Errorf("%s: error %v, want Compacted through 7", kind, err)
		}
	}
}

// TestFewReadThePast: for each read of past changes etcd loads all later ones into memory,
// so concurrent reads are limited.
func TestFewReadThePast(t *testing.T) {
	etcd := testbed.StartEtcd(t)
	reader := newReader(etcd)
	last := etcd.Write(pod("a"), "one")
	for range concurrentPasts {
		reader.pasts <- struct{}{}
	}
	query := Query{GroupResource: pods, Through: last, Limit: 10, Bytes: 1 << 20}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := reader.Past(ctx, query); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v while all places are taken", err)
	}
	<-reader.pasts
	for range 2 * concurrentPasts { // each releases the semaphore
		if run, err := reader.Past(t.Context(), query); err != nil || len(run.Changes) != 1 {
			t.Errorf("got %v, %v", run, err)
		}
	}
}

// TestAPageOfALongPast: the memory of a page does not depend on the number of later
// changes. etcd sends a thousand revisions at once.
func TestAPageOfALongPast(t *testing.T) {
	etcd := testbed.StartRemoteEtcd(t)
	reader := newReader(etcd)
	var last int64
	for i := range 300 {
		last = etcd.Write(pod(fmt.Sprint(i)), strings.Repeat("x", 100<<10))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run, err := reader.Past(t.Context(), Query{GroupResource: pods, Through: last, Limit: 1000, Bytes: 1 << 20})
	runtime.ReadMemStats(&after)
	if err != nil || len(run.Changes) != 11 {
		t.Fatalf("%d changes, %v; want 11", len(run.Changes), err)
	}
	// This includes 30 MB that etcd, in the same process, decodes.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 80<<20 {
		t.Errorf("allocated %d MiB", allocated>>20)
	} else {
		t.Logf("allocated %d MiB", allocated>>20)
	}
}
