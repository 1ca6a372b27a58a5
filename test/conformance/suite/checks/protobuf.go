package checks

import (
	"bytes"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func protobuf() {
	s := Section("Protobuf envelope")

	s.Check("PROTO-01", "a 4-byte prefix 6b 38 73 00, then the message Unknown with typeMeta and raw", func(t *T) {
		t.CM("a", "k", "v")
		r := t.GET(t.In("configmaps")+"/a", Accept(Protobuf)).Is(200)
		t.True(bytes.HasPrefix(r.Raw, []byte{0x6b, 0x38, 0x73, 0x00}), "the prefix 6b 38 73 00, got % x", r.Raw[:min(4, len(r.Raw))])
		e := r.Envelope()
		t.Eq("typeMeta.apiVersion", e.APIVersion, "v1")
		t.Eq("typeMeta.kind", e.Kind, "ConfigMap")
		t.True(len(e.Raw) > 0, "a serialized object in raw")
	})
	s.Check("PROTO-02", "Accept Protobuf: the response has the same Content-Type", func(t *T) {
		r := t.GET("/api/v1/namespaces/default", Accept(Protobuf)).Is(200)
		t.Eq("Content-Type", r.Header.Get("Content-Type"), Protobuf)
	})
	s.Check("PROTO-03", "raw: the complete serialized object (metadata and data of a ConfigMap)", func(t *T) {
		o := t.POST(t.In("configmaps"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: x}}, data: {k: v, l: w}}`).OK().Obj()
		raw := t.GET(t.In("configmaps")+"/a", Accept(Protobuf)).Is(200).Envelope().Raw
		meta := raw.Field(1)
		t.Eq("name", string(meta.Field(1)), "a")
		t.Eq("namespace", string(meta.Field(3)), t.NS())
		t.Eq("uid", string(meta.Field(5)), o.UID())
		t.Eq("resourceVersion", string(meta.Field(6)), o.RV())
		t.Eq("labels", meta.Pairs(11), map[string]string{"app": "x"})
		t.Eq("data", raw.Pairs(2), map[string]string{"k": "v", "l": "w"})
	})
	s.Check("PROTO-04", "a list in Protobuf: one envelope of the list kind", func(t *T) {
		t.LeasesNamed("l", 3)
		e := t.GET(t.In(Leases), Accept(Protobuf)).Is(200).Envelope()
		t.Eq("typeMeta.kind", e.Kind, "LeaseList")
		t.Eq("typeMeta.apiVersion", e.APIVersion, "coordination.platform.io/v1")
		t.True(string(e.Raw.Field(1).Field(2)) != "", "a list resourceVersion")
		var names []string
		for _, it := range e.Raw.Fields(2) {
			names = append(names, string(it.Field(1).Field(1)))
		}
		t.SameSet("names of the items", names, "l-00", "l-01", "l-02")
	})
	s.Check("PROTO-05", "Content-Type Protobuf on POST: body is Protobuf", func(t *T) {
		body := ProtoConfigMap(ProtoMeta("a", t.NS(), map[string]string{"made": "pb"}), map[string]string{"k": "v"})
		o := t.POST(t.In("configmaps"), body, Type(Protobuf)).OK().Obj()
		t.Eq("kind of the JSON response", o.Str("kind"), "ConfigMap")
		o = t.GET(t.In("configmaps") + "/a").OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "v"})
		t.Eq("labels", o.At("metadata.labels"), Obj{"made": "pb"})
	})
	s.Check("PROTO-06", "Content-Type Protobuf on PUT: the bytes that were got can be put back", func(t *T) {
		t.CM("a", "k", "v")
		got := t.GET(t.In("configmaps")+"/a", Accept(Protobuf)).Is(200)
		e := got.Envelope()
		e.Raw = e.Raw.Pair(2, "more", "data")
		t.PUT(t.In("configmaps")+"/a", e.Bytes(), Type(Protobuf)).OK()
		t.Eq("data", t.GET(t.In("configmaps")+"/a").OK().Obj().At("data"), Obj{"k": "v", "more": "data"})
	})
	s.Check("PROTO-07", "a Protobuf body without the prefix is refused", func(t *T) {
		body := ProtoConfigMap(ProtoMeta("a", t.NS(), nil), nil)
		t.POST(t.In("configmaps"), body[4:], Type(Protobuf)).ClientError()
		t.GET(t.In("configmaps") + "/a").Is(404)
	})
	s.Check("PROTO-08", "a watch in Protobuf: frames with the event type and an enveloped object", func(t *T) {
		list := t.GET(t.In(Leases)).OK().Obj()
		w := t.TryWatch(t.In(Leases)+"?resourceVersion="+Esc(list.RV()), Accept(Protobuf))
		t.Eq("status", w.Resp.StatusCode, 200)
		t.Contains("Content-Type", w.Resp.Header.Get("Content-Type"), Protobuf)
		t.Lease("a")
		event, object, err := ProtoFrame(w.Resp.Body)
		t.True(err == nil, "a length-delimited watch event, got error %v", err)
		t.Eq("event type", event, "ADDED")
		t.Eq("kind", object.Kind, "Lease")
		t.Eq("name", string(object.Raw.Field(1).Field(1)), "a")
	})
	s.Check("PROTO-09", "custom resources may lack Protobuf: 406 when nothing else is accepted", func(t *T) {
		c := t.CRD(AnySchema)
		t.POST(t.In(c.Resource()), c.Object("a", "")).OK()
		t.GET(t.In(c.Resource())+"/a", Accept(Protobuf)).Is(406)
		t.GET(t.In(c.Resource()), Accept(Protobuf)).Is(406)
	})
	s.Check("PROTO-10", "Protobuf then application/json: fallback for a custom resource", func(t *T) {
		c := t.CRD(AnySchema)
		t.POST(t.In(c.Resource()), c.Object("a", "")).OK()
		r := t.GET(t.In(c.Resource())+"/a", Accept(Protobuf+", application/json")).Is(200)
		t.Eq("Content-Type", r.ContentType(), "application/json")
		t.Eq("name", r.Obj().Name(), "a")
	})
	s.Check("PROTO-11", "the API reference is served in Protobuf for every built-in group listed", func(t *T) {
		for _, c := range []struct{ path, kind string }{
			{t.In("pods"), "PodList"}, {t.In("secrets"), "SecretList"}, {t.In("services"), "ServiceList"},
			{t.In("apps/v1/deployments"), "DeploymentList"}, {t.In("batch/v1/jobs"), "JobList"},
			{All("rbac.authorization.platform.io/v1/clusterroles"), "ClusterRoleList"},
			{t.In("networking.platform.io/v1/ingresses"), "IngressList"},
			{All("storage.platform.io/v1/storageclasses"), "StorageClassList"},
			{CSRs, "CertificateSigningRequestList"},
		} {
			t.Eq("kind at "+c.path, t.GET(c.path, Accept(Protobuf)).Is(200).Envelope().Kind, c.kind)
		}
	})
}
