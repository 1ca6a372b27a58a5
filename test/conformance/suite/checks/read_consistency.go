package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func readConsistency() {
	s := Section("Read consistency")

	s.Check("READ-01", "get, unset: Most Recent", func(t *T) {
		t.Lease("a")
		for range 5 {
			want := t.PATCH(MergePatch, t.In(Leases)+"/a", Obj{"spec": Obj{"holderIdentity": RandomID(8)}}).OK().Obj()
			t.Eq("object right after a change", t.GET(t.In(Leases)+"/a").Is(200).Obj(), want)
		}
	})
	s.Check("READ-02", "get, 0: Any", func(t *T) {
		o := t.Lease("a")
		t.Until(5*time.Second, "GET ?resourceVersion=0 finds the object", func() bool {
			return t.GET(t.In(Leases)+"/a?resourceVersion=0").Code == 200
		})
		t.Eq("uid", t.GET(t.In(Leases)+"/a?resourceVersion=0").Is(200).Obj().UID(), o.UID())
	})
	s.Check("READ-03", "get, other value: Not older than", func(t *T) {
		t.Lease("a")
		for range 5 {
			want := t.PATCH(MergePatch, t.In(Leases)+"/a", Obj{"spec": Obj{"holderIdentity": RandomID(8)}}).OK().Obj()
			got := t.GET(t.In(Leases) + "/a?resourceVersion=" + Esc(want.RV())).Is(200).Obj()
			t.Eq("holder at a version not older than the change", got.Str("spec.holderIdentity"), want.Str("spec.holderIdentity"))
		}
	})
	s.Check("READ-04", "list, match unset, limit unset, version unset: Most Recent", func(t *T) {
		t.Past()
		t.Presently(t.ListLeases(""))
	})
	s.Check("READ-05", "list, match unset, limit unset, version 0: Any", func(t *T) {
		t.Past()
		o := t.ListLeases("resourceVersion=0")
		t.True(o.RV() != "" && o.RV() != "0", "a list resourceVersion, got %q", o.RV())
	})
	s.Check("READ-06", "list, match unset, limit=n, version unset: Most Recent", func(t *T) {
		t.Past()
		t.Presently(t.ListLeases("limit=10"))
	})
	s.Check("READ-07", "list, match unset, limit=n, other value: Exact", func(t *T) {
		v := t.Past()
		t.Exactly(t.ListLeases("limit=10&resourceVersion="+Esc(v)), v)
	})
	s.Check("READ-08", "list, match unset, limit=n, continue=token, version unset: Continue Token, Exact", func(t *T) {
		v, c, rest := t.FirstChunk()
		o := t.ListLeases("limit=10&continue=" + c)
		t.Eq("version: that of the first chunk", o.RV(), v)
		t.SameSet("names at that version", o.Names(), rest...)
	})
	s.Check("READ-09", "list, match unset, limit=n, continue=token, other value: 400", func(t *T) {
		v, c, _ := t.FirstChunk()
		t.GET(t.In(Leases)+"?limit=10&resourceVersion="+Esc(v)+"&continue="+c).Status(400, "")
	})
	for _, c := range []struct{ id, what, query string }{
		{"READ-10", "list, match Exact, limit unset, version unset: Invalid", "resourceVersionMatch=Exact"},
		{"READ-11", "list, match Exact, limit=n, version 0: Invalid", "resourceVersionMatch=Exact&limit=5&resourceVersion=0"},
		{"READ-12", "list, match NotOlderThan, limit unset, version unset: Invalid", "resourceVersionMatch=NotOlderThan"},
	} {
		s.Check(c.id, c.what, func(t *T) { t.GET(t.In(Leases) + "?" + c.query).ClientError() })
	}
	s.Check("READ-13", "list, match Exact, limit unset, other value: Exact", func(t *T) {
		v := t.Past()
		t.Exactly(t.ListLeases("resourceVersionMatch=Exact&resourceVersion="+Esc(v)), v)
	})
	s.Check("READ-14", "list, match NotOlderThan, limit unset, version 0: Any", func(t *T) {
		t.Past()
		t.True(t.ListLeases("resourceVersionMatch=NotOlderThan&resourceVersion=0").RV() != "", "a list resourceVersion")
	})
	s.Check("READ-15", "list, match NotOlderThan, limit unset, other value: Not older than", func(t *T) {
		t.Past()
		now := t.GET(t.In(Leases)).OK().Obj().RV()
		t.Presently(t.ListLeases("resourceVersionMatch=NotOlderThan&resourceVersion=" + Esc(now)))
	})
	s.Check("READ-16", "watch, unset: synthetic ADDED for every existing resource, then later changes", func(t *T) {
		t.Past()
		w := t.Watch(t.In(Leases))
		t.Eq("synthetic events", w.Synthetic(2), []string{"a", "c"})
		t.Lease("d")
		w.Expect("ADDED", "d")
	})
	s.Check("READ-17", "watch, other value: changes after the given version only; no synthetic events", func(t *T) {
		v := t.Past()
		w := t.Watch(t.In(Leases) + "?resourceVersion=" + Esc(v))
		t.Eq("holder", w.Expect("MODIFIED", "a").Str("spec.holderIdentity"), "two")
		w.Expect("ADDED", "c")
		w.Expect("DELETED", "b")
		w.Silent(300 * time.Millisecond)
	})
	s.Check("READ-18", "Exact at an unavailable version: 410, unless it can be served exactly", func(t *T) {
		t.Lease("a")
		r := t.GET(t.In(Leases) + "?resourceVersionMatch=Exact&resourceVersion=1")
		if r.Code == 200 {
			t.Eq("list resourceVersion", r.Obj().RV(), "1")
			t.Eq("number of items", len(r.Obj().List("items")), 0)
			return
		}
		r.Status(410, "")
	})
}
