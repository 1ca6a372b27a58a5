package contracttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// customKey returns a key of the custom type with the same group and resource as the
// case's built-in type.
func (c storeCase) customKey(namespace, name string) resource.Key {
	key := c.key(namespace, name)
	key.Custom = true
	return key
}

func storeKeepsCustomApart(t *testing.T, c storeCase) {
	builtIn := c.create(t, c.key("ns", "a"), "built in")
	custom := c.create(t, c.customKey("ns", "a"), "custom")
	c.create(t, c.customKey("ns", "b"), "custom")
	wantNames(t, c.list(t, services.ListRequest{}), "ns/a")
	page, err := c.store.List(c.ctx, services.ListRequest{GroupResource: custom.Key.GroupResource})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, page, "ns/a", "ns/b")
	for _, want := range []services.Object{builtIn, custom} {
		got, err := c.store.Get(c.ctx, services.GetRequest{Key: want.Key})
		if err != nil || got.Key != want.Key || string(got.JSON) != string(want.JSON) {
			t.Errorf("got %s %s, %v; want %s", got.Key, got.JSON, err, want.JSON)
		}
	}
	if _, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: custom.Key}); err != nil {
		t.Fatal(err)
	}
	wantNames(t, c.list(t, services.ListRequest{}), "ns/a")
}

func storeCopies(t *testing.T, c storeCase) {
	source := c.create(t, c.key("ns", "a"), "one")
	copyOf := func(name string, of services.Requirement) error {
		key := c.customKey("ns", name)
		_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.content(key, "copy"), Requires: []services.Requirement{of}})
		return err
	}
	wantReason(t, copyOf("a", services.Requirement{Key: source.Key}), services.ReasonBadRequest)
	wantReason(t, copyOf("a", services.Requirement{Key: c.key("ns", ""), Revision: source.Revision}), services.ReasonBadRequest)
	wantReason(t, copyOf("a", services.Requirement{Key: source.Key, Revision: source.Revision - 1}), services.ReasonConflict)
	wantReason(t, copyOf("a", services.Requirement{Key: c.key("ns", "nobody"), Revision: source.Revision}), services.ReasonConflict)
	of := services.Requirement{Key: source.Key, Revision: source.Revision}
	if err := copyOf("a", of); err != nil {
		t.Fatal(err)
	}
	wantReason(t, copyOf("a", of), services.ReasonAlreadyExists)
	if _, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: source.Key, Revision: source.Revision}); err != nil {
		t.Fatal(err)
	}
	wantReason(t, copyOf("b", of), services.ReasonConflict)
	wantNames(t, c.list(t, services.ListRequest{}))
}

// storeRequires writes under requirements: each of them counts, for a create and for an
// update, and a write whose requirement has changed is not applied.
func storeRequires(t *testing.T, c storeCase) {
	required := make([]services.Requirement, services.MaxRequirements)
	for i := range required {
		o := c.create(t, c.key("required", fmt.Sprint("r", i)), "one")
		required[i] = services.Requirement{Key: o.Key, Revision: o.Revision}
	}
	key := c.key("ns", "a")
	create := func(requires []services.Requirement) error {
		_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.content(key, "one"), Requires: requires})
		return err
	}
	wantReason(t, create(append(slices.Clone(required), required[0])), services.ReasonBadRequest)
	for _, wrong := range []int{0, 1, len(required) - 1} {
		others := slices.Clone(required)
		others[wrong].Revision--
		wantReason(t, create(others), services.ReasonConflict)
	}
	wantNames(t, c.list(t, services.ListRequest{Namespace: "ns"}))
	if err := create(required); err != nil {
		t.Fatal(err)
	}
	wantReason(t, create(required), services.ReasonAlreadyExists)
	stored, err := c.store.Get(c.ctx, services.GetRequest{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	update := services.UpdateRequest{Key: key, Revision: stored.Revision, Content: c.content(key, "two"), Requires: required}
	last := required[len(required)-1]
	if _, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: last.Key}); err != nil {
		t.Fatal(err)
	}
	_, err = c.store.Update(c.ctx, update)
	wantReason(t, err, services.ReasonConflict)
	if s := services.AsStatus(err); s == nil || s.Details == nil || s.Details.Name != required[0].Key.Name {
		t.Errorf("%v is not about the requirements", err)
	}
	update.Requires = required[:len(required)-1]
	if _, err := c.store.Update(c.ctx, update); err != nil {
		t.Error(err)
	}
}
