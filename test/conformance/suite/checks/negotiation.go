package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func negotiation() {
	s := Section("Content negotiation")

	s.Check("NEG-01", "application/json is the default", func(t *T) {
		t.CM("a")
		t.Eq("Content-Type without Accept", t.GET(t.In("configmaps")+"/a").Is(200).ContentType(), "application/json")
		t.Eq("Content-Type with */*", t.GET(t.In("configmaps")+"/a", Accept("*/*")).Is(200).ContentType(), "application/json")
	})
	s.Check("NEG-02", "an unsupported requested type yields 406", func(t *T) {
		t.CM("a")
		t.GET(t.In("configmaps")+"/a", Accept("text/html")).Is(406)
		t.GET(t.In("configmaps"), Accept("application/msword")).Is(406)
	})
	s.Check("NEG-03", "an unsupported Table version yields 406", func(t *T) {
		t.CM("a")
		t.GET(t.In("configmaps")+"/a", Accept("application/json;as=Table;g=meta.platform.io;v=v9")).Is(406)
		t.GET(t.In("configmaps")+"/a", Accept("application/json;as=Carpet;g=meta.platform.io;v=v1beta1")).Is(406)
	})
	s.Check("NEG-04", "a body of an unsupported Content-Type yields 415", func(t *T) {
		t.POST(t.In("configmaps"), []byte("<configmap/>"), Type("text/xml")).Is(415)
	})
	s.Check("NEG-05", "an error body is JSON by default", func(t *T) {
		r := t.GET(t.In("configmaps") + "/missing").Is(404)
		t.Eq("Content-Type", r.ContentType(), "application/json")
	})
	s.Check("NEG-06", "Protobuf, Table and JSON give the same object", func(t *T) {
		o := t.CM("a", "k", "v")
		e := t.GET(t.In("configmaps")+"/a", Accept(Protobuf)).Is(200).Envelope()
		t.Eq("resourceVersion in Protobuf", string(e.Raw.Field(1).Field(6)), o.RV())
		row := t.Table(t.In("configmaps") + "/a").List("rows")[0]
		t.Eq("first cell", row.At("cells").([]any)[0], "a")
	})
	s.Check("NEG-07", "a type that only asks for something has no Table: 406, or the next one that is asked for", func(t *T) {
		const reviews = "authorization.platform.io/v1/selfsubjectaccessreviews"
		const table = "application/json;as=Table;g=meta.platform.io;v=v1"
		body := Obj{"apiVersion": "authorization.platform.io/v1", "kind": "SelfSubjectAccessReview",
			"spec": Obj{"resourceAttributes": Obj{"verb": "get", "resource": "pods"}}}
		t.POST(All(reviews), body, Accept(table)).Is(406)
		t.Eq("kind", t.POST(All(reviews), body, Accept(table+", application/json")).OK().Obj().Str("kind"), "SelfSubjectAccessReview")
	})
}
