package store

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/resource"
)

var eventType = resource.GroupResource{Resource: "events"}

// split starts a store over two etcds, of which the second stores some types.
func split(t *testing.T, main, second *clientv3.Client, types ...resource.GroupResource) *Store {
	t.Helper()
	s := New(Config{
		Client: main, Overrides: []etcd.Override{{Name: "second", Types: types, Client: second}},
		Log: discard, Metrics: prometheus.NewRegistry(), FutureWait: 50 * time.Millisecond,
	})
	await(t, s)
	return s
}

// TestContractOfOverrides runs the contract suite on types in an etcd of their own, beside types of the
// main one.
func TestContractOfOverrides(t *testing.T) {
	var types []resource.GroupResource
	for i := range 40 {
		things := resource.GroupResource{Group: "test.example", Resource: fmt.Sprintf("things%d", i)}
		types = append(types, things, resource.GroupResource{Group: things.Group, Resource: things.Resource, Custom: true})
	}
	open := func(t *testing.T) services.Store {
		main := openEtcd(t)
		if _, err := main.Put(t.Context(), "/raise", ""); err != nil {
			t.Fatal(err)
		}
		return split(t, main, openEtcd(t), types...)
	}
	kittest.LocalAndRemote(t, contract.Store, open, contracttest.Store)
}

// TestOverridesAreApart: each type is written to and read from its own etcd, at its revisions; no write
// requires an object of another etcd; what an etcd holds of types of the other is not served.
func TestOverridesAreApart(t *testing.T) {
	main, second := openEtcd(t), openEtcd(t)
	before := replica(t, main)
	left := resource.Key{GroupResource: eventType, Namespace: "default", Name: "left"}
	if _, err := before.Create(t.Context(), services.CreateRequest{Key: left, Content: content("left", "0")}); err != nil {
		t.Fatal(err)
	}
	stranger := create(t, replica(t, second), "stranger")
	for range 50 { // revisions differ
		if _, err := main.Put(t.Context(), "/raise", ""); err != nil {
			t.Fatal(err)
		}
	}
	s := split(t, main, second, eventType)
	event := resource.Key{GroupResource: eventType, Namespace: "default", Name: "e"}
	made, err := s.Create(t.Context(), services.CreateRequest{Key: event, Content: content("e", "0")})
	if err != nil {
		t.Fatal(err)
	}
	kept := create(t, s, "kept")
	for client, want := range map[*clientv3.Client][2]int64{main: {0, 1}, second: {1, 0}} {
		for i, key := range []resource.Key{event, kept.Key} {
			if found, err := client.Get(t.Context(), key.Path()); err != nil || found.Count != want[i] {
				t.Errorf("%s is %d times in an etcd, want %d: %v", key, found.Count, want[i], err)
			}
		}
	}
	of := func(gr resource.GroupResource) int64 {
		revision, err := s.Revision(t.Context(), gr)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	if events, others := of(eventType), of(kept.Key.GroupResource); events < made.Revision || others < kept.Revision || others-events < 40 {
		t.Errorf("revisions %d and %d after writes at %d and %d", events, others, made.Revision, kept.Revision)
	}
	if page, err := s.List(t.Context(), services.ListRequest{GroupResource: eventType}); err != nil || len(page.Objects) != 1 || page.Revision > made.Revision+10 {
		t.Errorf("a list at %d: %d objects, %v", page.Revision, len(page.Objects), err)
	}
	for _, key := range []resource.Key{left, stranger.Key} {
		if _, err := s.Get(t.Context(), services.GetRequest{Key: key}); !services.IsReason(err, services.ReasonNotFound) {
			t.Errorf("%s in an etcd that does not store it: %v", key, err)
		}
	}
	if m, o := s.misplaced(s.main), s.misplaced(s.apart[0]); m != 1 || o != 1 {
		t.Errorf("misplaced: %d and %d", m, o)
	}
	requires := []services.Requirement{{Key: event, Revision: made.Revision}}
	if _, err := s.Update(t.Context(), services.UpdateRequest{Key: kept.Key, Revision: kept.Revision, Content: content("kept", "1"), Requires: requires}); !services.IsReason(err, services.ReasonBadRequest) {
		t.Errorf("a write that requires an object of another etcd: %v", err)
	}
}

// TestOverrideAway: the store is ready while the etcd of an override does not respond: its types are
// unavailable, and nothing else is.
func TestOverrideAway(t *testing.T) {
	main := openEtcd(t)
	address := serveEtcd(t, func(*embed.Config) {})
	s := split(t, main, dial(t, address), eventType)
	kept := create(t, s, "kept")
	types := []resource.GroupResource{kept.Key.GroupResource, eventType}
	event := services.CreateRequest{Key: resource.Key{GroupResource: eventType, Namespace: "default", Name: "e"}, Content: content("e", "0")}
	if _, err := s.Create(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	heads, err := s.Heads(t.Context(), types)
	if err != nil || heads[0].Epoch == heads[1].Epoch || heads[1].Changed > heads[1].Revision {
		t.Fatalf("%+v, %v", heads, err)
	}
	never := split(t, main, dial(t, "127.0.0.1:1"), eventType)
	<-never.apart[0].mirror.Contact().Away()
	for what, err := range map[string]error{
		"get":    failing(never.Get(t.Context(), services.GetRequest{Key: event.Key})),
		"list":   failing(never.List(t.Context(), services.ListRequest{GroupResource: eventType})),
		"create": failing(never.Create(t.Context(), event)),
	} {
		if !services.IsReason(err, services.ReasonServiceUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := never.Get(t.Context(), services.GetRequest{Key: kept.Key}); err != nil {
		t.Errorf("another type: %v", err)
	}
	heads, err = never.Heads(t.Context(), types)
	if err != nil || heads[0].Changed > heads[0].Revision || heads[1].Changed != math.MaxInt64 {
		t.Errorf("%+v, %v", heads, err)
	}
}

func failing[T any](_ T, err error) error { return err }
