package checks

import (
	"slices"
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func watch() {
	s := Section("Watch events")

	s.Check("WATCH-01", "ADDED: a resource is created; object is the full resource", func(t *T) {
		w := t.WatchFrom(t.In("configmaps"))
		made := t.CM("a", "k", "v")
		t.Eq("object of the event", w.Expect("ADDED", "a"), made)
	})
	s.Check("WATCH-02", "MODIFIED: a resource is updated; object is the full resource", func(t *T) {
		t.CM("a", "k", "v")
		w := t.WatchFrom(t.In("configmaps"))
		changed := t.PATCH(MergePatch, t.In("configmaps")+"/a", `{data: {k: w}}`).OK().Obj()
		t.Eq("object of the event", w.Expect("MODIFIED", "a"), changed)
	})
	s.Check("WATCH-03", "deletions are delivered as watch events", func(t *T) {
		made := t.CM("a", "k", "v")
		w := t.WatchFrom(t.In("configmaps"))
		t.DELETE(t.In("configmaps")+"/a", nil).OK()
		o := w.Expect("DELETED", "a")
		t.Eq("data of the deleted object", o.Str("data.k"), "v")
		t.Eq("uid of the deleted object", o.UID(), made.UID())
		t.Ne("resourceVersion of the deletion", o.RV(), made.RV())
	})
	s.Check("WATCH-04", "the feed returns all creates, deletes and updates after the version, in order", func(t *T) {
		start := t.GET(t.In("configmaps")).OK().Obj().RV()
		t.CM("a")
		t.PATCH(MergePatch, t.In("configmaps")+"/a", `{data: {num: "1"}}`).OK()
		t.CM("b")
		t.DELETE(t.In("configmaps")+"/a", nil).OK()
		t.PATCH(MergePatch, t.In("configmaps")+"/b", `{data: {num: "2"}}`).OK()
		w := t.Watch(t.In("configmaps") + "?resourceVersion=" + Esc(start))
		w.Expect("ADDED", "a")
		w.Expect("MODIFIED", "a")
		w.Expect("ADDED", "b")
		w.Expect("DELETED", "a")
		w.Expect("MODIFIED", "b")
		w.Silent(300 * time.Millisecond)
	})
	s.Check("WATCH-05", "the response is chunked, with a stream of objects each holding type and object", func(t *T) {
		w := t.WatchFrom(t.In("configmaps"))
		t.True(slices.Contains(w.Resp.TransferEncoding, "chunked"), "Transfer-Encoding chunked, got %v", w.Resp.TransferEncoding)
		t.True(strings.HasPrefix(w.Resp.Header.Get("Content-Type"), "application/json"), "Content-Type application/json, got %q", w.Resp.Header.Get("Content-Type"))
		t.CM("a")
		w.Expect("ADDED", "a")
		t.CM("b") // later events come on the same stream without a new request
		w.Expect("ADDED", "b")
	})
	s.Check("WATCH-06", "a watch in one namespace shows only that namespace", func(t *T) {
		other := t.NewNS()
		w := t.WatchFrom(t.In("configmaps"))
		t.POST(In(other, "configmaps"), ConfigMap("elsewhere")).OK()
		t.CM("here")
		w.Find(10*time.Second, "ADDED here", func(e Event) bool {
			t.Eq("namespace of the event", e.Object.Str("metadata.namespace"), t.NS())
			return e.Type == "ADDED" && e.Object.Name() == "here"
		})
	})
	s.Check("WATCH-07", "a watch of a cluster-scoped type", func(t *T) {
		w := t.WatchFrom("/api/v1/namespaces")
		name := t.NewNS()
		w.Find(10*time.Second, "ADDED "+name, func(e Event) bool { return e.Type == "ADDED" && e.Object.Name() == name })
	})
	s.Check("WATCH-08", "BOOKMARK: requested type with only metadata.resourceVersion set (it need not arrive)", func(t *T) {
		t.CM("a")
		w := t.Watch(t.In("configmaps") + "?allowWatchBookmarks=true&timeoutSeconds=3")
		w.Expect("ADDED", "a")
		marks := 0
		for _, e := range w.Rest(6 * time.Second) {
			if e.Type == "BOOKMARK" {
				marks++
				t.Eq("kind", e.Object.Str("kind"), "ConfigMap")
				t.Eq("apiVersion", e.Object.Str("apiVersion"), "v1")
				t.True(e.Object.RV() != "", "a resourceVersion in the bookmark")
				t.True(e.Object.Name() == "" && !e.Object.Has("data"), "no other fields set, got %v", e.Object)
			}
		}
		if marks == 0 {
			t.Skipf("no bookmark arrived, which is allowed")
		}
	})
	s.Check("WATCH-09", "BOOKMARK only when allowWatchBookmarks=true", func(t *T) {
		t.CM("a")
		w := t.Watch(t.In("configmaps") + "?timeoutSeconds=3")
		w.Expect("ADDED", "a")
		for _, e := range w.Rest(8 * time.Second) {
			t.Ne("type of an event that was not asked for", e.Type, "BOOKMARK")
		}
	})
	s.Check("WATCH-10", "a version older than retained history: 410, as a response or as an error event; or every event since", func(t *T) {
		// Version 1 precedes everything. A server that still holds its whole
		// history may serve it; any other must answer 410.
		t.CM("a")
		w := t.TryWatch(t.In("configmaps") + "?resourceVersion=1&timeoutSeconds=5")
		if w.Resp.StatusCode == 410 {
			return
		}
		t.Eq("status", w.Resp.StatusCode, 200)
		w = t.Watch(t.In("configmaps") + "?resourceVersion=1&timeoutSeconds=5")
		e := w.Next(8 * time.Second)
		if e.Type == "ERROR" {
			t.Eq("kind of the error object", e.Object.Str("kind"), "Status")
			t.Eq("code of the error object", e.Object.Num("code"), 410)
			return
		}
		t.Eq("type of the first event", e.Type, "ADDED")
	})
	s.Check("WATCH-11", "a watch whose time is over ends without an event, and is no error", func(t *T) {
		t.CM("a")
		r := t.GET(t.In("configmaps") + "?watch=1&timeoutSeconds=-1").Is(200)
		t.Eq("body", string(r.Raw), "")
	})
}
