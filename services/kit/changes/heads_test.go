package changes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// TestHeads: nothing is unchanged before all types are followed. Then a revision counts until
// an object of one of the types changes or is deleted, whatever happens to others.
func TestHeads(t *testing.T) {
	cluster := fake.New(t)
	a, b, other := resource.GroupResource{Resource: "as"}, resource.GroupResource{Resource: "bs"}, resource.GroupResource{Resource: "others"}
	cluster.Put(t, a, `{metadata: {name: x}}`)
	heads := changes.NewHeads(cluster.Source(), cluster, a, b)
	now := func() int64 {
		revision, _ := cluster.Revision(t.Context(), a)
		return revision
	}
	if heads.Unchanged(now()) || heads.Unchanged(1<<60) {
		t.Error("unchanged before it is followed")
	}
	for _, loop := range heads.Loops() {
		go func() { _ = loop(t.Context()) }() // they return nil when the test ends
	}
	wait := func(what string, condition func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !condition(); <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	wait("never followed", func() bool { return heads.Unchanged(now()) })
	if heads.Unchanged(0) || heads.Unchanged(-1) {
		t.Error("no revision counts as one")
	}
	before := now()
	cluster.Put(t, other, `{metadata: {name: x}}`)
	for what, change := range map[string]func() int64{
		"a new object":     func() int64 { return cluster.Put(t, b, `{metadata: {name: y}}`) },
		"a change":         func() int64 { return cluster.Put(t, a, `{metadata: {name: x}, spec: 1}`) },
		"a deleted object": func() int64 { return cluster.Delete(resource.Key{GroupResource: a, Name: "x"}) },
	} {
		if !heads.Unchanged(before) {
			t.Errorf("changed before %s", what)
		}
		awaited := make(chan error, 1)
		go func() { awaited <- heads.AwaitChange(t.Context(), before) }()
		at := change()
		if err := <-awaited; err != nil {
			t.Errorf("%s is not awaited: %v", what, err)
		}
		wait(what+" is never noticed", func() bool { return !heads.Unchanged(before) })
		wait(what+" is still noticed at its revision", func() bool { return heads.Unchanged(at) })
		before = at
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := heads.AwaitChange(ctx, before); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing changes: %v", err)
	}
}
