package watchhub

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// leading returns the follower of a hub that leads and does not run, and its messages about pods.
func leading(t *testing.T, bus *testbed.NATS, conn *nats.Conn) (*follower, *nats.Subscription) {
	t.Helper()
	sub, err := bus.Connect().SubscribeSync(changes.Subject(pods))
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	master, err := seal.NewMaster(seal.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	f := New(Config{Etcd: testbed.StartEtcd(t).Client, Bus: conn, Name: "hub", History: time.Hour, WindowBytes: 64 << 20, Log: slog.New(slog.DiscardHandler)}).main
	f.election.leading.Store(true)
	f.publisher.Master = func() *seal.Master { return master }
	f.window.Reset(1, epoch.Epoch{ID: "one"})
	f.told = time.Now().Add(time.Hour) // no progress is due
	return f, sub
}

// arrived returns a watch of which n responses have arrived, each with one change.
func arrived(n int) chan clientv3.WatchResponse {
	responses := make(chan clientv3.WatchResponse, n)
	for i := range n {
		key, revision := pod(fmt.Sprint("p", i)), int64(i+2)
		responses <- clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}, Events: []*clientv3.Event{{
			Kv: &mvccpb.KeyValue{Key: []byte(key.Path()), Value: testbed.Record(key, "value"), ModRevision: revision, CreateRevision: revision, Version: 1},
		}}}
	}
	return responses
}

// messages returns how many messages were published.
func messages(t *testing.T, f *follower, sub *nats.Subscription) int {
	t.Helper()
	if err := f.config.Bus.FlushTimeout(followTimeout); err != nil {
		t.Fatal(err)
	}
	n := 0
	for wait := followTimeout; ; wait = 100 * time.Millisecond {
		if _, err := sub.NextMsg(wait); errors.Is(err, nats.ErrTimeout) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		n++
	}
}

// TestPolicyIsKnownAtOnce: a change of a role or binding is followed by the progress of all types, once for those of a
// moment. Decisions would otherwise be older than the change until the next progress is due.
func TestPolicyIsKnownAtOnce(t *testing.T) {
	bus := testbed.StartNATS(t)
	f, _ := leading(t, bus, bus.Connect())
	listener := bus.Connect()
	progress, err := listener.SubscribeSync(changes.SubjectProgress)
	if err == nil {
		err = listener.FlushTimeout(followTimeout) // the subscription is in force
	}
	if err != nil {
		t.Fatal(err)
	}
	of := func(gr resource.GroupResource) {
		responses := make(chan clientv3.WatchResponse, 3)
		for i := range cap(responses) {
			key, revision := resource.Key{GroupResource: gr, Namespace: "n", Name: fmt.Sprint("p", i)}, f.window.Progress().Through+int64(i+1)
			responses <- clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}, Events: []*clientv3.Event{{
				Kv: &mvccpb.KeyValue{Key: []byte(key.Path()), Value: testbed.Record(key, "value"), ModRevision: revision, CreateRevision: revision, Version: 1},
			}}}
		}
		if err := f.takeAll(t.Context(), responses, <-responses, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range []string{"rbac.authorization.k8s.io", "rbac.authorization.platform.io"} {
		f.told = time.Now().Add(time.Hour)
		of(pods) // which is no reason for a report
		of(resource.GroupResource{Group: group, Resource: "rolebindings"})
		if n := messages(t, f, progress); n != 1 {
			t.Errorf("%d reports of progress after changes of bindings of %s, want 1", n, group)
		}
	}
}

// TestResponsesOfAMoment: the changes of responses that have arrived share a message, up to a
// bound; also if the watch ends with them.
func TestResponsesOfAMoment(t *testing.T) {
	bus := testbed.StartNATS(t)
	f, sub := leading(t, bus, bus.Connect())
	responses := arrived(mostTogether + 5)
	if err := f.takeAll(t.Context(), responses, <-responses, true); err != nil {
		t.Fatal(err)
	}
	if n := messages(t, f, sub); n != 1 || len(responses) != 5 {
		t.Errorf("%d messages, and %d responses are left", n, len(responses))
	}
	close(responses)
	if err := f.takeAll(t.Context(), responses, <-responses, true); !errors.Is(err, errWatchEnded) {
		t.Errorf("got %v", err)
	}
	if n := messages(t, f, sub); n != 1 {
		t.Errorf("%d messages before the end", n)
	}
	if through := f.window.Progress().Through; through != mostTogether+6 {
		t.Errorf("the window is through %d", through)
	}
}

// TestResponsesInOneProcess: on the bus of one process each response is published at once.
func TestResponsesInOneProcess(t *testing.T) {
	bus := testbed.StartNATS(t)
	f, _ := leading(t, bus, bus.ConnectPrivately())
	responses := arrived(5)
	if err := f.takeAll(t.Context(), responses, <-responses, true); err != nil || len(responses) != 4 {
		t.Errorf("%d responses are left, %v", len(responses), err)
	}
}
