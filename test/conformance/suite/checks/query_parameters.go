package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func queryParameters() {
	s := Section("Query parameters")

	s.Check("QUERY-01", "watch=1 turns a list request into a watch; without it the list is returned", func(t *T) {
		t.Lease("a")
		t.Eq("kind without watch", t.GET(t.In(Leases)).Is(200).Obj().Str("kind"), "LeaseList")
		t.Watch(t.In(Leases)+"?watch=1").Expect("ADDED", "a")
	})
	s.Check("QUERY-02", "dryRun: All or empty (default: not dry); another value is refused", func(t *T) {
		t.POST(t.In("configmaps")+"?dryRun=Some", ConfigMap("a")).ClientError()
		t.GET(t.In("configmaps") + "/a").Is(404)
		t.POST(t.In("configmaps"), ConfigMap("a")).OK()
		t.GET(t.In("configmaps") + "/a").Is(200)
	})
	s.Check("QUERY-03", "fieldManager: required for apply", func(t *T) {
		t.PATCH(ApplyPatch, t.In("configmaps")+"/a", ConfigMap("a", "k", "v")).ClientError()
		t.GET(t.In("configmaps") + "/a").Is(404)
	})
	s.Check("QUERY-04", "fieldManager on POST, PUT and PATCH names the manager", func(t *T) {
		path := t.In("configmaps")
		o := t.POST(path+"?fieldManager=m-post", ConfigMap("a", "k", "1")).OK().Obj()
		t.True(o.Manager("m-post", "Update") != nil, "an entry of m-post")
		o = t.PUT(path+"/a?fieldManager=m-put", o.Copy().Set("data.l", "2")).OK().Obj()
		t.True(o.Owns("m-put", "Update", "f:data", "f:l"), "m-put to own data.l")
		o = t.PATCH(JSONPatch, path+"/a?fieldManager=m-patch", `[{op: add, path: /data/m, value: "3"}]`).OK().Obj()
		t.True(o.Owns("m-patch", "Update", "f:data", "f:m"), "m-patch to own data.m")
	})
	s.Check("QUERY-05", "fieldSelector: the namespace selects nothing that has none and fields of its own", func(t *T) {
		t.GET(All("nodes")+"?fieldSelector=metadata.namespace%3Da").Status(400, "BadRequest")
		t.GET(All("namespaces")+"?fieldSelector=metadata.namespace%3Da").Status(400, "BadRequest")
		t.GET(All("configmaps") + "?fieldSelector=metadata.namespace%3D" + t.NS()).OK()
	})
}
