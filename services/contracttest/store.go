package contracttest

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// storeTimeout bounds every case of the suite.
const storeTimeout = 30 * time.Second

// Store is the conformance suite of services.Store. It needs an empty store and leaves
// objects behind. The store's timeout of waits for a future revision should be short.
func Store(t *testing.T, open func(t *testing.T) services.Store) {
	store := open(t)
	cases := []struct {
		name string
		run  func(*testing.T, storeCase)
	}{
		{"a created object can be read", storeCreates},
		{"a name is taken once", storeRefusesTakenNames},
		{"an update replaces one revision", storeUpdates},
		{"a deletion returns the last state", storeDeletes},
		{"a deletion has preconditions", storeChecksPreconditions},
		{"too large objects are not stored", storeRefusesLargeObjects},
		{"invalid requests are refused", storeRefusesBadRequests},
		{"lists are ordered and bounded to their namespace", storeListsInOrder},
		{"pages show one state", storePages},
		{"pages are bounded in bytes", storeBoundsPages},
		{"selectors select", storeSelects},
		{"reads are as fresh as requested", storeReadsFresh},
		{"heads follow changes of their type", storeHeads},
		{"an exact list shows the past", storeListsThePast},
		{"writers do not lose each other's writes", storeSwaps},
		{"custom types are kept apart", storeKeepsCustomApart},
		{"a copy needs its source", storeCopies},
		{"a write needs what it requires", storeRequires},
		{"a repeated write is applied once", storeRepeats},
		{"a write that was found not to be applied never is", storeFences},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), storeTimeout)
			defer cancel()
			c.run(t, storeCase{ctx, store, resource.GroupResource{Group: "test.example", Resource: "things" + strconv.Itoa(i)}})
		})
	}
}

// storeCase is one case: a resource type of its own in the store under test.
type storeCase struct {
	ctx   context.Context
	store services.Store
	gr    resource.GroupResource
}

func (c storeCase) key(namespace, name string) resource.Key {
	return resource.Key{GroupResource: c.gr, Namespace: namespace, Name: name}
}

// content returns an object with a label and a field of the same value.
func (c storeCase) content(key resource.Key, value string) services.Content {
	return services.Content{
		JSON:   fmt.Appendf(nil, `{"kind":"Thing","metadata":{"name":%q,"namespace":%q},"spec":{"value":%q}}`, key.Name, key.Namespace, value),
		UID:    "uid-of-" + key.Name,
		Labels: map[string]string{"value": value}, Fields: map[string]string{"spec.value": value},
	}
}

// large returns an object with padding of a size in bytes.
func (c storeCase) large(key resource.Key, size int) services.Content {
	content := c.content(key, "large")
	content.JSON = fmt.Appendf(nil, `{"metadata":{"name":%q},"padding":%q}`, key.Name, strings.Repeat("x", size))
	return content
}

func (c storeCase) create(t *testing.T, key resource.Key, value string) services.Object {
	t.Helper()
	o, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.content(key, value)})
	if err != nil {
		t.Fatalf("creating %s: %v", key, err)
	}
	return o
}

func (c storeCase) list(t *testing.T, r services.ListRequest) services.Page {
	t.Helper()
	r.GroupResource = c.gr
	page, err := c.store.List(c.ctx, r)
	if err != nil {
		t.Fatalf("listing %s: %v", c.gr, err)
	}
	return page
}

// names returns namespace/name of each object.
func names(page services.Page) []string {
	out := []string{}
	for _, o := range page.Objects {
		out = append(out, strings.TrimPrefix(o.Key.Namespace+"/"+o.Key.Name, "/"))
	}
	return out
}

func wantNames(t *testing.T, page services.Page, want ...string) {
	t.Helper()
	if got := names(page); !reflect.DeepEqual(got, append([]string{}, want...)) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func storeCreates(t *testing.T, c storeCase) {
	for _, key := range []resource.Key{c.key("ns", "a"), c.key("", "b"), {GroupResource: resource.GroupResource{Resource: "things"}, Name: c.gr.Resource}} {
		created := c.create(t, key, "one")
		want := services.Object{Key: key, Revision: created.Revision, UID: "uid-of-" + key.Name,
			Labels: map[string]string{"value": "one"}, Fields: map[string]string{"spec.value": "one"}}
		want.JSON = fmt.Appendf(nil, `{"kind":"Thing","metadata":{"resourceVersion":"%d","name":%q,"namespace":%q},"spec":{"value":"one"}}`,
			created.Revision, key.Name, key.Namespace)
		if !reflect.DeepEqual(created, want) {
			t.Errorf("created %+v\nwant    %+v", created, want)
		}
		read, err := c.store.Get(c.ctx, services.GetRequest{Key: key})
		if err != nil || !reflect.DeepEqual(read, want) {
			t.Errorf("read %+v, %v\nwant %+v", read, err, want)
		}
	}
	_, err := c.store.Get(c.ctx, services.GetRequest{Key: c.key("ns", "nobody")})
	wantReason(t, err, services.ReasonNotFound)
}

func storeRefusesTakenNames(t *testing.T, c storeCase) {
	key := c.key("ns", "a")
	first := c.create(t, key, "one")
	_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.content(key, "two")})
	wantReason(t, err, services.ReasonAlreadyExists)
	if o, err := c.store.Get(c.ctx, services.GetRequest{Key: key}); err != nil || o.Revision != first.Revision {
		t.Errorf("the first object has changed: %+v, %v", o, err)
	}
}

func storeUpdates(t *testing.T, c storeCase) {
	key := c.key("ns", "a")
	first := c.create(t, key, "one")
	update := services.UpdateRequest{Key: key, Revision: first.Revision, Content: c.content(key, "two")}
	second, err := c.store.Update(c.ctx, update)
	if err != nil {
		t.Fatal(err)
	}
	if second.Revision <= first.Revision || second.Labels["value"] != "two" || !strings.Contains(string(second.JSON), `"value":"two"`) {
		t.Errorf("updated %+v", second)
	}
	read, err := c.store.Get(c.ctx, services.GetRequest{Key: key})
	if err != nil || !reflect.DeepEqual(read, second) {
		t.Errorf("read %+v, %v\nwant %+v", read, err, second)
	}
	same := services.UpdateRequest{Key: key, Revision: second.Revision, Content: update.Content, Unchanged: true}
	if again, err := c.store.Update(c.ctx, same); err != nil || !reflect.DeepEqual(again, second) {
		t.Errorf("unchanged %+v, %v\nwant %+v", again, err, second)
	}
	_, err = c.store.Update(c.ctx, update)
	wantReason(t, err, services.ReasonConflict)
	gone := services.UpdateRequest{Key: c.key("ns", "nobody"), Revision: first.Revision, Content: c.content(c.key("ns", "nobody"), "two")}
	_, err = c.store.Update(c.ctx, gone)
	wantReason(t, err, services.ReasonNotFound)
}

func storeDeletes(t *testing.T, c storeCase) {
	key := c.key("ns", "a")
	created := c.create(t, key, "one")
	deleted, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if deleted.Revision <= created.Revision || deleted.UID != created.UID || !reflect.DeepEqual(deleted.Labels, created.Labels) {
		t.Errorf("deleted %+v", deleted)
	}
	if !strings.Contains(string(deleted.JSON), fmt.Sprintf(`"resourceVersion":"%d"`, deleted.Revision)) {
		t.Errorf("the last state does not carry the revision of the deletion: %s", deleted.JSON)
	}
	_, err = c.store.Get(c.ctx, services.GetRequest{Key: key})
	wantReason(t, err, services.ReasonNotFound)
	_, err = c.store.Delete(c.ctx, services.DeleteRequest{Key: key})
	wantReason(t, err, services.ReasonNotFound)
	c.create(t, key, "again")
}

func storeChecksPreconditions(t *testing.T, c storeCase) {
	key := c.key("ns", "a")
	o := c.create(t, key, "one")
	for _, r := range []services.DeleteRequest{
		{Key: key, UID: "another"}, {Key: key, Revision: o.Revision + 1}, {Key: key, Revision: o.Revision, UID: "another"},
	} {
		_, err := c.store.Delete(c.ctx, r)
		wantReason(t, err, services.ReasonConflict)
		if r.UID != "" && !strings.Contains(err.Error(), "Precondition failed: UID in precondition: another, UID in object meta: uid-of-a") {
			t.Errorf("message: %v", err)
		}
	}
	_, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: c.key("ns", "nobody"), UID: "another"})
	wantReason(t, err, services.ReasonNotFound)
	if _, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: key, Revision: o.Revision, UID: o.UID}); err != nil {
		t.Errorf("with preconditions that hold: %v", err)
	}
}

func storeRefusesLargeObjects(t *testing.T, c storeCase) {
	key := c.key("ns", "a")
	_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.large(key, 5<<20)})
	wantReason(t, err, services.ReasonRequestEntityTooLarge)
	wantNames(t, c.list(t, services.ListRequest{}))
	o := c.create(t, key, "small")
	_, err = c.store.Update(c.ctx, services.UpdateRequest{Key: key, Revision: o.Revision, Content: c.large(key, 5<<20)})
	wantReason(t, err, services.ReasonRequestEntityTooLarge)
	if read, err := c.store.Get(c.ctx, services.GetRequest{Key: key}); err != nil || read.Revision != o.Revision {
		t.Errorf("after the refused update: %+v, %v", read, err)
	}
}

func storeRefusesBadRequests(t *testing.T, c storeCase) {
	key := c.key("ns", "a")
	for _, bad := range []resource.Key{c.key("ns", ""), c.key("ns", "a/b"), c.key("n/s", "a"),
		{GroupResource: resource.GroupResource{Group: "_custom", Resource: "test.example"}, Namespace: c.gr.Resource, Name: "a"},
		{GroupResource: resource.GroupResource{Group: "core", Resource: c.gr.Resource}, Name: "a"},
		{GroupResource: resource.GroupResource{Resource: c.gr.Resource, Custom: true}, Name: "a"}} {
		_, err := c.store.Create(c.ctx, services.CreateRequest{Key: bad, Content: c.content(bad, "one")})
		wantReason(t, err, services.ReasonBadRequest)
	}
	_, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: services.Content{JSON: []byte(`{"metadata":{}}`)}})
	wantReason(t, err, services.ReasonBadRequest)
	_, err = c.store.Update(c.ctx, services.UpdateRequest{Key: key, Content: c.content(key, "one")})
	wantReason(t, err, services.ReasonBadRequest)
	_, err = c.store.Get(c.ctx, services.GetRequest{Key: key, Read: services.Read{Mode: services.Exact, Revision: 1}})
	wantReason(t, err, services.ReasonBadRequest)
	for _, r := range []services.ListRequest{{LabelSelector: "a in ("}, {FieldSelector: "a"}, {Limit: -1}, {Read: services.Read{Mode: services.Exact}}} {
		_, err = c.store.List(c.ctx, r)
		wantReason(t, err, services.ReasonBadRequest)
	}
}

func storeListsInOrder(t *testing.T, c storeCase) {
	wantNames(t, c.list(t, services.ListRequest{}))
	for _, key := range []resource.Key{c.key("b", "1"), c.key("a", "2"), c.key("a", "10"), c.key("ab", "1"), c.key("a", "1")} {
		c.create(t, key, "one")
	}
	all := c.list(t, services.ListRequest{})
	wantNames(t, all, "a/1", "a/10", "a/2", "ab/1", "b/1")
	if all.Next != "" || all.Remaining != 0 {
		t.Errorf("the only page says Next %q, Remaining %d", all.Next, all.Remaining)
	}
	wantNames(t, c.list(t, services.ListRequest{Namespace: "a"}), "a/1", "a/10", "a/2")
	wantNames(t, c.list(t, services.ListRequest{Namespace: "nowhere"}))
}

func storePages(t *testing.T, c storeCase) {
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		c.create(t, c.key("ns", name), "one")
	}
	first := c.list(t, services.ListRequest{Limit: 2})
	wantNames(t, first, "ns/a", "ns/b")
	if first.Next == "" || first.Remaining != 3 {
		t.Fatalf("first page: Next %q, Remaining %d", first.Next, first.Remaining)
	}
	c.create(t, c.key("ns", "bb"), "later")
	if _, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: c.key("ns", "d")}); err != nil {
		t.Fatal(err)
	}
	exact := services.Read{Mode: services.Exact, Revision: first.Revision}
	second := c.list(t, services.ListRequest{Limit: 2, After: first.Next, Read: exact})
	wantNames(t, second, "ns/c", "ns/d")
	if second.Revision != first.Revision || second.Remaining != 1 {
		t.Errorf("second page: Revision %d, Remaining %d", second.Revision, second.Remaining)
	}
	third := c.list(t, services.ListRequest{Namespace: "", Limit: 2, After: second.Next, Read: exact})
	wantNames(t, third, "ns/e")
	if third.Next != "" || third.Remaining != 0 {
		t.Errorf("last page: Next %q, Remaining %d", third.Next, third.Remaining)
	}
	inside := c.list(t, services.ListRequest{Namespace: "ns", Limit: 4})
	wantNames(t, c.list(t, services.ListRequest{Namespace: "ns", After: inside.Next, Read: services.Read{Mode: services.Exact, Revision: inside.Revision}}), "ns/e")
}

func storeBoundsPages(t *testing.T, c storeCase) {
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		key := c.key("ns", name)
		if _, err := c.store.Create(c.ctx, services.CreateRequest{Key: key, Content: c.large(key, 900<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	r := services.ListRequest{Limit: 5}
	for {
		page := c.list(t, r)
		got = append(got, names(page)...)
		if len(page.Objects) == 0 || len(page.Objects) > 2 {
			t.Fatalf("a page has %d objects of 900 KiB", len(page.Objects))
		}
		if page.Next == "" {
			break
		}
		r = page.Following(r)
	}
	if strings.Join(got, " ") != "ns/a ns/b ns/c ns/d ns/e" {
		t.Errorf("the pages together hold %v", got)
	}
	for limit, want := range map[int]string{2: "ns/b", 3: "ns/c", 4: "ns/d", 5: "", 500: ""} {
		for _, selector := range []string{"", "value=large"} {
			page := c.list(t, services.ListRequest{Limit: limit, LabelSelector: selector, FindEnd: true})
			if len(page.Objects) == 0 || len(page.Objects) >= limit {
				t.Fatalf("limit %d: a page has %d objects of 900 KiB", limit, len(page.Objects))
			}
			if page.End == nil || *page.End != want {
				t.Errorf("limit %d: the objects end after %v, want %q", limit, page.End, want)
			}
		}
	}
	if page := c.list(t, services.ListRequest{Limit: 1, FindEnd: true}); page.End != nil || page.Next != "ns/a" {
		t.Errorf("a page with all objects of the limit: Next %q, End %v", page.Next, page.End)
	}
	if page := c.list(t, services.ListRequest{Limit: 3}); page.End != nil {
		t.Errorf("a page has an end that was not requested: %q", *page.End)
	}
}

func storeSelects(t *testing.T, c storeCase) {
	for i, name := range []string{"a", "b", "c", "d"} {
		c.create(t, c.key("ns"+strconv.Itoa(i%2), name), strconv.Itoa(i/2))
	}
	wantNames(t, c.list(t, services.ListRequest{LabelSelector: "value=1"}), "ns0/c", "ns1/d")
	wantNames(t, c.list(t, services.ListRequest{LabelSelector: "value notin (1)", Namespace: "ns1"}), "ns1/b")
	wantNames(t, c.list(t, services.ListRequest{FieldSelector: "spec.value!=0"}), "ns0/c", "ns1/d")
	wantNames(t, c.list(t, services.ListRequest{FieldSelector: "metadata.namespace=ns1"}), "ns1/b", "ns1/d")
	wantNames(t, c.list(t, services.ListRequest{FieldSelector: "metadata.name=c", Namespace: "ns0"}), "ns0/c")
	wantNames(t, c.list(t, services.ListRequest{FieldSelector: "metadata.name=c,spec.value=0"}))
	one := c.list(t, services.ListRequest{LabelSelector: "value=1", Limit: 1})
	wantNames(t, one, "ns0/c")
	if one.Next == "" || one.Remaining != -1 {
		t.Errorf("a selected page with more to come: Next %q, Remaining %d", one.Next, one.Remaining)
	}
	last := c.list(t, services.ListRequest{LabelSelector: "value=0", Limit: 2})
	if last.Next != "" {
		t.Errorf("nothing selected follows, and Next is %q", last.Next)
	}
}

func storeReadsFresh(t *testing.T, c storeCase) {
	o := c.create(t, c.key("ns", "a"), "one")
	revision, err := c.store.Revision(c.ctx, c.gr)
	if err != nil || revision < o.Revision {
		t.Errorf("Revision: %d, %v after a write at %d", revision, err, o.Revision)
	}
	notOlder := services.Read{Mode: services.NotOlderThan, Revision: o.Revision}
	if read, err := c.store.Get(c.ctx, services.GetRequest{Key: o.Key, Read: notOlder}); err != nil || read.Revision != o.Revision {
		t.Errorf("not older than %d: %+v, %v", o.Revision, read, err)
	}
	if page := c.list(t, services.ListRequest{Read: services.Read{Mode: services.AnyRevision}}); page.Revision < o.Revision {
		t.Errorf("a list after a newer read is at %d, before %d", page.Revision, o.Revision)
	}
	for _, mode := range []services.ReadMode{services.NotOlderThan, services.Exact} {
		_, err = c.store.List(c.ctx, services.ListRequest{GroupResource: c.gr, Read: services.Read{Mode: mode, Revision: revision + 1_000_000}})
		wantReason(t, err, services.ReasonTimeout)
		if s := services.AsStatus(err); s == nil || s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Reason != services.CauseTooLargeVersion {
			t.Errorf("a revision in the future: %+v", s)
		}
	}
}

func storeListsThePast(t *testing.T, c storeCase) {
	key := c.key("ns", "a")
	first := c.create(t, key, "one")
	second, err := c.store.Update(c.ctx, services.UpdateRequest{Key: key, Revision: first.Revision, Content: c.content(key, "two")})
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := c.store.Delete(c.ctx, services.DeleteRequest{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []struct {
		revision int64
		want     []services.Object
	}{{first.Revision, []services.Object{first}}, {second.Revision, []services.Object{second}}, {deleted.Revision, nil}} {
		page := c.list(t, services.ListRequest{Read: services.Read{Mode: services.Exact, Revision: state.revision}})
		if page.Revision != state.revision || !reflect.DeepEqual(page.Objects, state.want) {
			t.Errorf("at %d: %+v\nwant %+v", state.revision, page, state.want)
		}
	}
}

func storeSwaps(t *testing.T, c storeCase) {
	const writers, rounds = 8, 10
	key := c.key("ns", "counter")
	c.create(t, key, "0")
	increment := func() error {
		for {
			o, err := c.store.Get(c.ctx, services.GetRequest{Key: key})
			if err != nil {
				return err
			}
			n, _ := strconv.Atoi(o.Labels["value"])
			_, err = c.store.Update(c.ctx, services.UpdateRequest{Key: key, Revision: o.Revision, Content: c.content(key, strconv.Itoa(n+1))})
			if !services.IsReason(err, services.ReasonConflict) {
				return err
			}
		}
	}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range rounds {
				if err := increment(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if o, err := c.store.Get(c.ctx, services.GetRequest{Key: key}); err != nil || o.Labels["value"] != strconv.Itoa(writers*rounds) {
		t.Errorf("the counter is at %s, %v; want %d", o.Labels["value"], err, writers*rounds)
	}
}
