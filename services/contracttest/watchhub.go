package contracttest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// hubTimeout bounds every case of the suite.
const hubTimeout = 30 * time.Second

// HubSetup is a hub under test, with functions that write to the store that it follows.
// They end the test when they fail.
type HubSetup struct {
	Hub services.WatchHub
	// Write stores an object with one label and one selectable field, named
	// "value", of this value, and returns the revision.
	Write func(key resource.Key, value string) int64
	// Delete removes an object and returns the revision.
	Delete func(key resource.Key) int64
	// Forget compacts the changes up to a revision.
	Forget func(through int64)
}

// WatchHub is the conformance suite of services.WatchHub.
func WatchHub(t *testing.T, open func(t *testing.T) HubSetup) {
	setup := open(t)
	cases := []struct {
		name string
		run  func(*testing.T, hubCase)
	}{
		{"changes have type, object and old labels", hubDescribesChanges},
		{"changes are replayed after a revision", hubReplaysAfter},
		{"pages join without gaps", hubPages},
		{"changes of other types advance a quiet type", hubAdvancesQuietTypes},
		{"a future revision is accepted", hubAcceptsTheFuture},
		{"each type has keys of its own", hubKeys},
		{"compacted changes have expired", hubForgets}, // last: it affects all types
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), hubTimeout)
			defer cancel()
			c.run(t, hubCase{ctx, setup, resource.GroupResource{Group: "test.example", Resource: "things" + strconv.Itoa(i)}})
		})
	}
}

// hubCase is one case: a resource type of its own in the hub under test.
type hubCase struct {
	ctx context.Context
	HubSetup
	gr resource.GroupResource
}

func (c hubCase) key(namespace, name string) resource.Key {
	return resource.Key{GroupResource: c.gr, Namespace: namespace, Name: name}
}

// replay returns the changes in (after, through], which the hub may learn with a delay.
// It checks that each page continues the previous one.
func (c hubCase) replay(t *testing.T, after, through int64, limit int) (changes []services.Change, pages int) {
	t.Helper()
	position := after
	for position < through {
		r, err := c.Hub.Replay(c.ctx, services.ReplayRequest{GroupResource: c.gr, After: position, Limit: limit})
		if err != nil {
			t.Fatalf("replaying %s after %d: %v", c.gr, position, err)
		}
		last := position
		for _, change := range r.Changes {
			if change.Previous > last {
				t.Errorf("change %d names %d as previous, after %d", change.Object.Revision, change.Previous, last)
			}
			if last = max(last, change.Object.Revision); last != change.Object.Revision {
				t.Errorf("change %d comes after %d", change.Object.Revision, last)
			}
		}
		if r.Through < last || limit > 0 && len(r.Changes) > limit {
			t.Fatalf("a page of %d changes up to %d is complete through %d", len(r.Changes), last, r.Through)
		}
		changes = append(changes, r.Changes...)
		position, pages = r.Through, pages+1
	}
	return changes, pages
}

func hubDescribesChanges(t *testing.T, c hubCase) {
	key := c.key("ns", "a")
	added := c.Write(key, "one")
	modified := c.Write(key, "two")
	deleted := c.Delete(key)
	again := c.Write(key, "three")
	got, _ := c.replay(t, added-1, again, 0)
	want := []struct {
		kind       services.ChangeType
		revision   int64
		value, old string
	}{
		{services.Added, added, "one", ""},
		{services.Modified, modified, "two", "one"},
		{services.Deleted, deleted, "two", "two"},
		{services.Added, again, "three", ""},
	}
	if len(got) != len(want) {
		t.Fatalf("%d changes, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.Type != w.kind || g.Object.Revision != w.revision || g.Object.Key != key {
			t.Errorf("change %d is %s %s at %d, want %s at %d", i, g.Type, g.Object.Key, g.Object.Revision, w.kind, w.revision)
		}
		if version := `"resourceVersion":"` + strconv.FormatInt(w.revision, 10) + `"`; !strings.Contains(string(g.Object.JSON), version) {
			t.Errorf("change %d has no %s: %s", i, version, g.Object.JSON)
		}
		if !strings.Contains(string(g.Object.JSON), w.value) || g.Object.UID == "" {
			t.Errorf("change %d has not the object %s: %+v", i, w.value, g.Object)
		}
		for what, pair := range map[string][2]map[string]string{
			"labels":     {g.Object.Labels, valued(w.value)},
			"fields":     {g.Object.Fields, valued(w.value)},
			"old labels": {g.OldLabels, valued(w.old)},
			"old fields": {g.OldFields, valued(w.old)},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("change %d has %s %v, want %v", i, what, pair[0], pair[1])
			}
		}
	}
}

// valued returns the labels or fields of an object of HubSetup.Write.
func valued(value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{"value": value}
}

func hubReplaysAfter(t *testing.T, c hubCase) {
	first := c.Write(c.key("", "a"), "one")
	second := c.Write(c.key("ns", "b"), "two")
	third := c.Write(c.key("", "c"), "three")
	for after, want := range map[int64][]int64{first - 1: {first, second, third}, first: {second, third}, second: {third}} {
		changes, _ := c.replay(t, after, third, 0)
		var got []int64
		for _, change := range changes {
			got = append(got, change.Object.Revision)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("after %d: %v, want %v", after, got, want)
		}
	}
	r, err := c.Hub.Replay(c.ctx, services.ReplayRequest{GroupResource: c.gr, After: third})
	if err != nil || len(r.Changes) > 0 || r.Through < third || r.More {
		t.Errorf("after the newest: %+v, %v", r, err)
	}
}

func hubPages(t *testing.T, c hubCase) {
	first := c.Write(c.key("ns", "0"), "zero")
	last := first
	for i := range 9 {
		last = c.Write(c.key("ns", strconv.Itoa(i)), "value")
	}
	changes, pages := c.replay(t, first-1, last, 3)
	if len(changes) != 10 || pages < 4 {
		t.Errorf("%d changes on %d pages, want 10 on at least 4", len(changes), pages)
	}
}

func hubAdvancesQuietTypes(t *testing.T, c hubCase) {
	first := c.Write(c.key("ns", "a"), "one")
	other := resource.Key{GroupResource: resource.GroupResource{Resource: "others"}, Name: "b"}
	custom := c.key("ns", "a")
	custom.Custom = true // a custom type of the same group and resource is another type
	c.Write(custom, "three")
	if changes, _ := c.replay(t, first, c.Write(other, "two"), 0); len(changes) > 0 {
		t.Errorf("changes of another type: %+v", changes)
	}
	c.gr.Custom = true
	if changes, _ := c.replay(t, first, c.Write(other, "four"), 0); len(changes) != 1 || changes[0].Object.Key != custom {
		t.Errorf("changes of the custom type: %+v", changes)
	}
}

func hubAcceptsTheFuture(t *testing.T, c hubCase) {
	future := c.Write(c.key("ns", "a"), "one") + 1000
	r, err := c.Hub.Replay(c.ctx, services.ReplayRequest{GroupResource: c.gr, After: future})
	if err != nil || len(r.Changes) > 0 || r.Through < future || r.More {
		t.Errorf("after %d: %+v, %v", future, r, err)
	}
}

func hubKeys(t *testing.T, c hubCase) {
	ask := func(gr resource.GroupResource, id []byte) services.BusKey {
		t.Helper()
		keys, err := c.Hub.Keys(c.ctx, services.KeysRequest{GroupResource: gr, ID: id})
		if err != nil || len(keys.Keys) == 0 {
			t.Fatalf("keys of %s: %+v, %v", gr, keys, err)
		}
		return keys.Keys[len(keys.Keys)-1]
	}
	one, again := ask(c.gr, nil), ask(c.gr, []byte("unknown!"))
	if !reflect.DeepEqual(one, again) {
		t.Errorf("two answers: %+v and %+v", one, again)
	}
	if len(one.ID) != 8 || len(one.Changes) != 32 || len(one.Progress) != 32 || len(one.Public) != ed25519.PublicKeySize || one.Lifetime != 0 {
		t.Errorf("the key that seals: %+v", one)
	}
	other := ask(resource.GroupResource{Group: c.gr.Group, Resource: "others"}, one.ID)
	if bytes.Equal(one.Changes, other.Changes) || bytes.Equal(one.Changes, one.Progress) {
		t.Error("a key opens more than one type")
	}
	if !bytes.Equal(one.Progress, other.Progress) || !bytes.Equal(one.Public, other.Public) {
		t.Error("types differ in the key of progress, or of signatures")
	}
}

func hubForgets(t *testing.T, c hubCase) {
	first := c.Write(c.key("ns", "a"), "one")
	forgotten := c.Write(c.key("ns", "a"), "two")
	last := c.Write(c.key("ns", "a"), "three")
	c.replay(t, first, last, 0)
	c.Forget(forgotten)
	_, err := c.Hub.Replay(c.ctx, services.ReplayRequest{GroupResource: c.gr, After: first})
	wantReason(t, err, services.ReasonExpired)
	if changes, _ := c.replay(t, forgotten, last, 0); len(changes) != 1 {
		t.Errorf("%d changes after what is forgotten, want 1", len(changes))
	}
}
