package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func chunks() {
	s := Section("Chunked lists")

	s.Check("CHUNK-01", "at most n items and a non-empty continue when more remain, until continue is empty", func(t *T) {
		want := t.LeasesNamed("l", 7)
		var got []string
		token := ""
		for range 10 {
			o := t.ListLeases("limit=3&continue=" + Esc(token))
			t.True(len(o.List("items")) <= 3, "at most 3 items, got %d", len(o.List("items")))
			got = append(got, o.Names()...)
			if token = o.Str("metadata.continue"); token == "" {
				break
			}
		}
		t.SameSet("names over all chunks", got, want...)
	})
	s.Check("CHUNK-02", "a consistent snapshot; later changes are not shown", func(t *T) {
		all := t.LeasesNamed("l", 6)
		first := t.ListLeases("limit=2")
		want := Without(all, first.Names())
		t.PATCH(MergePatch, t.In(Leases)+"/"+want[1], `{spec: {holderIdentity: later}}`).OK()
		t.DELETE(t.In(Leases)+"/"+want[2], nil).OK()
		t.Lease("l-045")
		rest := t.ListLeases("limit=10&continue=" + Esc(first.Str("metadata.continue")))
		t.SameSet("names of the rest", rest.Names(), want...)
		t.Eq("holder of the changed one", rest.Item(want[1]).Str("spec.holderIdentity"), "one")
	})
	s.Check("CHUNK-03", "a token that the server never gave is refused", func(t *T) {
		t.LeasesNamed("l", 3)
		r := t.GET(t.In(Leases) + "?limit=2&continue=bm90LWEtdG9rZW4")
		r.Is(400, 410)
		r.Status(r.Code, "")
	})
	s.Check("CHUNK-04", "an expired token returns 410 (5 minutes by default)", func(t *T) {
		t.LeasesNamed("l", 4)
		first := t.ListLeases("limit=2")
		var r *Resp
		t.Until(14*time.Minute, "the token expires with 410", func() bool {
			t.Sleep(15 * time.Second)
			t.PATCH(MergePatch, t.In(Leases)+"/l-00", Obj{"spec": Obj{"holderIdentity": RandomID(6)}}).OK()
			r = t.GET(t.In(Leases) + "?limit=2&continue=" + Esc(first.Str("metadata.continue")))
			return r.Code != 200
		})
		r.Status(410, "Expired")
	}, Slow(15*time.Minute))
	s.Check("CHUNK-05", "limit without more resources than fit: no token", func(t *T) {
		t.LeasesNamed("l", 3)
		o := t.ListLeases("limit=3")
		t.Eq("continue", o.Str("metadata.continue"), "")
		t.Eq("number of items", len(o.List("items")), 3)
	})
}
