package contracttest

import (
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
	copyOf := func(name string, of services.Source) error {
		key := c.customKey("ns", name)
		_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.content(key, "copy"), Source: &of})
		return err
	}
	wantReason(t, copyOf("a", services.Source{Key: source.Key}), services.ReasonBadRequest)
	wantReason(t, copyOf("a", services.Source{Key: c.key("ns", ""), Revision: source.Revision}), services.ReasonBadRequest)
	wantReason(t, copyOf("a", services.Source{Key: source.Key, Revision: source.Revision - 1}), services.ReasonConflict)
	wantReason(t, copyOf("a", services.Source{Key: c.key("ns", "nobody"), Revision: source.Revision}), services.ReasonConflict)
	of := services.Source{Key: source.Key, Revision: source.Revision}
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
