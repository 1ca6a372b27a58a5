package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func errorsSection() {
	s := Section("Errors")

	s.Check("ERR-01", "an error response is a Status object", func(t *T) {
		o := t.GET(t.In("configmaps")+"/missing").Status(404, "NotFound")
		t.Eq("apiVersion", o.Str("apiVersion"), "v1")
		t.Eq("details.name", o.Str("details.name"), "missing")
		t.Eq("details.kind", o.Str("details.kind"), "configmaps")
		t.True(o.Str("message") != "", "a message")
	})
	for _, c := range []struct{ id, what, path string }{
		{"ERR-02", "get", "/api/v1/namespaces/default?resourceVersion=900000000000000"},
		{"ERR-03", "list", "/api/v1/namespaces?resourceVersion=900000000000000"},
		{"ERR-04", "list with NotOlderThan", "/api/v1/namespaces?resourceVersion=900000000000000&resourceVersionMatch=NotOlderThan"},
	} {
		s.Check(c.id, "unrecognized (too large) resourceVersion, "+c.what+": 504, message 'Too large resource version'", func(t *T) {
			o := t.GET(c.path).Status(504, "Timeout")
			t.Contains("message", o.Str("message"), "Too large resource version")
		})
	}
	s.Check("ERR-05", "validation failure: 422 Invalid, with a cause for the field", func(t *T) {
		d := Deployment("a", 1)
		d.Set("spec.replicas", -1)
		o := t.POST(t.In("apps/v1/deployments"), d).Status(422, "Invalid")
		t.Eq("field of the first cause", o.Str("details.causes.0.field"), "spec.replicas")
	})
	s.Check("ERR-06", "a body that is no JSON: 400", func(t *T) {
		t.POST(t.In("configmaps"), []byte("{not json"), Type("application/json")).Status(400, "BadRequest")
	})
	s.Check("ERR-07", "an unsupported body type: 415", func(t *T) {
		t.PUT(t.In("configmaps")+"/a", []byte("a=b"), Type("application/x-www-form-urlencoded")).Is(415)
	})
	s.Check("ERR-08", "PUT of an object that does not exist: 404", func(t *T) {
		t.PUT(t.In("configmaps")+"/a", ConfigMap("a")).Status(404, "NotFound")
	})
	s.Check("ERR-09", "a watch token of the past is never answered with silence: events or 410", func(t *T) {
		rv := t.GET(t.In(Leases)).OK().Obj().RV()
		t.Lease("a")
		w := t.Watch(t.In(Leases) + "?resourceVersion=" + Esc(rv))
		ev := w.Next(10 * time.Second)
		t.True(ev.Type == "ADDED" || ev.Type == "ERROR" && ev.Object.Num("code") == 410, "ADDED or an ERROR with code 410, got %s", ev.Type)
	})
	s.Check("ERR-10", "an empty text is a value where the field may be left out: 422", func(t *T) {
		t.POST(t.In("persistentvolumeclaims"), Claim("a").Set("spec.volumeMode", "")).Status(422, "Invalid")
		d := Deployment("a", 1)
		d.Set("spec.strategy", Obj{"rollingUpdate": Obj{"maxSurge": ""}})
		t.POST(t.In("apps/v1/deployments"), d).Status(422, "Invalid")
	})
	s.Check("ERR-11", "a value of a wrong type: 400, also where a default takes the place of what is left out", func(t *T) {
		t.POST(t.In("services"), `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}], sessionAffinityConfig: x}}`).Status(400, "BadRequest")
		t.POST(t.In("services"), `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}], sessionAffinityConfig: {clientIP: {timeoutSeconds: x}}}}`).Status(400, "BadRequest")
		t.POST(t.In("replicationcontrollers"), `{apiVersion: v1, kind: ReplicationController, metadata: {name: a}, spec: {selector: x, `+
			`template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`).Status(400, "BadRequest")
		t.POST(t.In(Leases), `{apiVersion: coordination.platform.io/v1, kind: Lease, metadata: {name: a}, spec: {renewTime: "2021-04-08T12:00:00Z"}}`).Status(400, "BadRequest")
		t.POST(t.In("configmaps"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, creationTimestamp: yesterday}}`).Status(400, "BadRequest")
		t.POST(t.In("apps/v1/deployments"), Deployment("a", 1).Set("status.replicas", "many")).Status(400, "BadRequest")
	})
	s.Check("ERR-12", "an amount that is null is one of a resource, which has to exist: 422", func(t *T) {
		t.PodReady()
		pod := Pod("a")
		pod.List("spec.containers")[0]["resources"] = Obj{"limits": Obj{"a": nil}}
		t.POST(t.In("pods"), pod).Status(422, "Invalid")
	})
	s.Check("ERR-13", "a volume has one source, and the others are not looked into: 422", func(t *T) {
		o := t.POST(All("persistentvolumes")+"?dryRun=All", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {capacity: {storage: 1Gi},
  accessModes: [ReadWriteOnce], hostPath: {path: /a}, iscsi: {targetPortal: a, iqn: a, lun: 0}}}`).Status(422, "Invalid")
		t.Eq("causes", len(o.List("details.causes")), 1)
		t.Eq("field", o.Str("details.causes.0.field"), "spec.iscsi")
	})
}
