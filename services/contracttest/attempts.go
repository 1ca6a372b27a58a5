package contracttest

import (
	"context"
	"reflect"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// attempts returns the writes of an object as functions of one type: each writes a key
// with an Attempt that identifies the write. For all but the create, the object exists at
// the given revision.
func (c storeCase) attempts() map[string]func(context.Context, resource.Key, int64, services.Attempt) (services.Object, error) {
	return map[string]func(context.Context, resource.Key, int64, services.Attempt) (services.Object, error){
		"create": func(ctx context.Context, key resource.Key, _ int64, a services.Attempt) (services.Object, error) {
			return c.store.Create(ctx, services.CreateRequest{Key: key, Content: c.content(key, "mine"), Attempt: a})
		},
		"update": func(ctx context.Context, key resource.Key, revision int64, a services.Attempt) (services.Object, error) {
			return c.store.Update(ctx, services.UpdateRequest{Key: key, Revision: revision, Content: c.content(key, "mine"), Attempt: a})
		},
		"delete": func(ctx context.Context, key resource.Key, revision int64, a services.Attempt) (services.Object, error) {
			return c.store.Delete(ctx, services.DeleteRequest{Key: key, Revision: revision, Attempt: a})
		},
		"delete any": func(ctx context.Context, key resource.Key, _ int64, a services.Attempt) (services.Object, error) {
			return c.store.Delete(ctx, services.DeleteRequest{Key: key, Attempt: a})
		},
	}
}

// prepare creates the object that a write needs, and returns the Attempt of the write.
func (c storeCase) prepare(t *testing.T, verb string) (key resource.Key, revision int64, a services.Attempt) {
	t.Helper()
	key = c.key("ns", verb)
	if verb != "create" {
		revision = c.create(t, key, "first").Revision
	}
	a = services.Attempt{ID: services.NewWriteID()}
	var err error
	if a.Since, err = c.store.Revision(c.ctx, c.gr); err != nil {
		t.Fatal(err)
	}
	return key, revision, a
}

// storeRepeats repeats writes that were applied, immediately and after other writes: the
// response is the same, and nothing is written.
func storeRepeats(t *testing.T, c storeCase) {
	for verb, write := range c.attempts() {
		t.Run(verb, func(t *testing.T) {
			key, revision, a := c.prepare(t, verb)
			first, err := write(c.ctx, key, revision, a)
			if err != nil {
				t.Fatal(err)
			}
			a.Repeated = true
			for _, change := range []func() error{
				func() error { return nil },
				func() error { // the object exists and was written by another client
					if o, err := c.store.Get(c.ctx, services.GetRequest{Key: key}); err == nil {
						_, err = c.store.Update(c.ctx, services.UpdateRequest{Key: key, Revision: o.Revision, Content: c.content(key, "theirs")})
						return err
					}
					_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.content(key, "theirs")})
					return err
				},
				func() error { _, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: key}); return err },
				func() error {
					_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.content(key, "again")})
					return err
				},
			} {
				if err := change(); err != nil {
					t.Fatal(err)
				}
				before, _ := c.store.Get(c.ctx, services.GetRequest{Key: key})
				for range 2 {
					if again, err := write(c.ctx, key, revision, a); err != nil || !reflect.DeepEqual(again, first) {
						t.Fatalf("repeated: %+v, %v\nwant %+v", again, err, first)
					}
				}
				if after, _ := c.store.Get(c.ctx, services.GetRequest{Key: key}); !reflect.DeepEqual(after, before) {
					t.Fatalf("repeating has changed %+v\ninto %+v", before, after)
				}
			}
		})
	}
}

// storeFences repeats writes that were never applied: afterwards they never are.
func storeFences(t *testing.T, c storeCase) {
	for verb, write := range c.attempts() {
		t.Run(verb, func(t *testing.T) {
			key, revision, a := c.prepare(t, verb)
			repeated := a
			repeated.Repeated = true
			for _, attempt := range []services.Attempt{repeated, a, repeated, a} {
				_, err := write(c.ctx, key, revision, attempt)
				wantReason(t, err, services.ReasonServiceUnavailable)
			}
			if _, err := write(c.ctx, key, revision, services.Attempt{}); err != nil {
				t.Errorf("the same write as another attempt: %v", err)
			}
		})
	}
	_, err := c.store.Create(c.ctx, services.CreateRequest{Key: c.key("ns", "x"), Content: c.content(c.key("ns", "x"), ""), Attempt: services.Attempt{Repeated: true}})
	wantReason(t, err, services.ReasonBadRequest)
	_, err = c.store.Create(c.ctx, services.CreateRequest{Key: c.key("ns", "x"), Content: c.content(c.key("ns", "x"), ""), Attempt: services.Attempt{ID: "a/b"}})
	wantReason(t, err, services.ReasonBadRequest)
}
