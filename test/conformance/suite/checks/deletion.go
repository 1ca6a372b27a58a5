package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func deletion() {
	s := Section("Two-phase deletion")

	s.Check("DEL-01", "delete: finalizing, deletionTimestamp set to the current time", func(t *T) {
		t.POST(t.In("configmaps"), Held("a", "example.com/one")).OK()
		t.DELETE(t.In("configmaps")+"/a", nil).OK()
		o := t.GET(t.In("configmaps") + "/a").Is(200).Obj()
		at, err := time.Parse(time.RFC3339, o.Str("metadata.deletionTimestamp"))
		t.True(err == nil && time.Since(at).Abs() < time.Minute, "a deletionTimestamp near now, got %q", o.Str("metadata.deletionTimestamp"))
		t.PATCH(MergePatch, t.In("configmaps")+"/a", `{metadata: {finalizers: null}}`).OK()
	})
	s.Check("DEL-02", "the last finalizer is removed: removed from the backing store", func(t *T) {
		t.POST(t.In("configmaps"), Held("a", "example.com/one")).OK()
		t.DELETE(t.In("configmaps")+"/a", nil).OK()
		t.PATCH(JSONPatch, t.In("configmaps")+"/a", `[{op: remove, path: /metadata/finalizers}]`).OK()
		t.GET(t.In("configmaps")+"/a").Status(404, "NotFound")
	})
	s.Check("DEL-03", "a second delete while finalizing keeps the first deletionTimestamp", func(t *T) {
		t.POST(t.In("configmaps"), Held("a", "example.com/one")).OK()
		t.DELETE(t.In("configmaps")+"/a", nil).OK()
		first := t.GET(t.In("configmaps") + "/a").Is(200).Obj().Str("metadata.deletionTimestamp")
		t.Sleep(1100 * time.Millisecond)
		t.DELETE(t.In("configmaps")+"/a", nil).OK()
		t.Eq("deletionTimestamp", t.GET(t.In("configmaps")+"/a").Is(200).Obj().Str("metadata.deletionTimestamp"), first)
		t.PATCH(MergePatch, t.In("configmaps")+"/a", `{metadata: {finalizers: null}}`).OK()
	})
	s.Check("DEL-04", "removing finalizers before deletion leaves the object", func(t *T) {
		t.POST(t.In("configmaps"), Held("a", "example.com/one")).OK()
		t.PATCH(MergePatch, t.In("configmaps")+"/a", `{metadata: {finalizers: null}}`).OK()
		t.GET(t.In("configmaps") + "/a").Is(200)
	})
	s.Check("DEL-05", "an object without finalizers is gone after delete", func(t *T) {
		t.CM("a")
		t.DELETE(t.In("configmaps")+"/a", nil).OK()
		t.GET(t.In("configmaps")+"/a").Status(404, "NotFound")
		t.DELETE(t.In("configmaps")+"/a", nil).Status(404, "NotFound")
	})
	s.Check("DEL-06", "delete-collection deletes several resources", func(t *T) {
		t.LeasesNamed("l", 4)
		t.DELETE(t.In(Leases), nil).OK()
		t.Eq("items left", len(t.GET(t.In(Leases)).OK().Obj().List("items")), 0)
	})
	s.Check("DEL-07", "an event has no dependents: whatever becomes of them, it is gone at once", func(t *T) {
		for _, policy := range []string{"Foreground", "Orphan", "Background"} {
			o := t.POST(t.In("events.platform.io/v1/events"), t.Event()).OK().Obj()
			path := t.In("events.platform.io/v1/events") + "/" + o.Name()
			t.DELETE(path+"?propagationPolicy="+policy, nil).OK()
			t.GET(path).Status(404, "NotFound")
		}
	})
	s.Check("DEL-08", "a namespace that is being deleted stays as it is when it is deleted again", func(t *T) {
		path := All("namespaces") + "/" + t.NewNS()
		t.POST(path+"/configmaps", Held("a", "example.com/one")).OK()
		t.DELETE(path, nil).OK()
		o := t.DELETE(path+"?propagationPolicy=Foreground", nil).OK().Obj()
		t.True(!o.Has("metadata.finalizers"), "no finalizers, got %v", o.At("metadata.finalizers"))
		t.PATCH(MergePatch, path+"/configmaps/a", `{metadata: {finalizers: null}}`).OK()
	})
	s.Check("DEL-09", "nothing is created of a custom type that is being deleted, by no apply either", func(t *T) {
		c := t.CRD(AnySchema)
		at := t.In(c.Resource())
		t.POST(at, YAML("%s", c.Object("a", "")).Set("metadata.finalizers", []string{"example.com/one"})).OK()
		t.DELETE(c.Path, nil).OK()
		t.Until(10*time.Second, "a create is refused", func() bool { return t.POST(at+"?dryRun=All", c.Object("b", "")).Code/100 == 4 })
		t.Apply("one", at+"/c", c.Object("c", "")).ClientError()
		t.PATCH(MergePatch, at+"/a", `{metadata: {finalizers: null}}`).OK()
		t.Gone(c.Path, 30*time.Second)
	})
}
