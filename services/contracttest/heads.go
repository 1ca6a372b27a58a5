package contracttest

import (
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// storeHeads: the head of a type is at or after its last change, does not move with changes of
// other types, and the revision includes every acknowledged write.
func storeHeads(t *testing.T, c storeCase) {
	reader, ok := c.store.(services.HeadReader)
	if !ok {
		t.Skip("the store does not implement services.HeadReader")
	}
	other := storeCase{c.ctx, c.store, resource.GroupResource{Group: c.gr.Group, Resource: c.gr.Resource + "-other"}}
	custom := c.gr
	custom.Custom = true
	types := []resource.GroupResource{c.gr, other.gr, custom}
	heads := func() []services.Head {
		t.Helper()
		got, err := reader.Heads(c.ctx, types)
		if err != nil || len(got) != len(types) {
			t.Fatalf("got %+v, %v", got, err)
		}
		return got
	}
	before := heads()
	made := c.create(t, c.key("ns", "a"), "one")
	after := heads()
	if after[0].Changed != made.Revision || after[1].Changed != before[1].Changed || after[2].Changed != before[2].Changed || after[0].Revision < made.Revision {
		t.Errorf("after a create at %d: %+v, before it %+v", made.Revision, after, before)
	}
	theirs := other.create(t, other.key("ns", "a"), "one")
	after = heads()
	if after[0].Changed != made.Revision || after[1].Changed != theirs.Revision || after[1].Revision < theirs.Revision {
		t.Errorf("after a create of another type at %d: %+v", theirs.Revision, after)
	}
	updated, err := c.store.Update(c.ctx, services.UpdateRequest{Key: made.Key, Revision: made.Revision, Content: c.content(made.Key, "two")})
	if err != nil {
		t.Fatal(err)
	}
	if got := heads(); got[0].Changed != updated.Revision {
		t.Errorf("after an update at %d: %+v", updated.Revision, got)
	}
	gone, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: made.Key})
	if err != nil {
		t.Fatal(err)
	}
	if got := heads(); got[0].Changed != gone.Revision || got[1].Changed != theirs.Revision || got[0].Revision < gone.Revision {
		t.Errorf("after a deletion at %d: %+v", gone.Revision, got)
	}
	if got, err := reader.Heads(c.ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("of no types: %+v, %v", got, err)
	}
}
