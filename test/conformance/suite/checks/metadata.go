package checks

import (
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func metadata() {
	s := Section("Common object metadata")

	s.Check("META-01", "generateName: when set, the server generates a unique random name", func(t *T) {
		body := `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: job-}}`
		a := t.POST(t.In("configmaps"), body).OK().Obj()
		b := t.POST(t.In("configmaps"), body).OK().Obj()
		t.True(strings.HasPrefix(a.Name(), "job-") && len(a.Name()) > len("job-"), "a name made of job- and a random part, got %q", a.Name())
		t.Ne("name of the second object", b.Name(), a.Name())
		t.Eq("read back name", t.GET(t.In("configmaps")+"/"+a.Name()).OK().Obj().Name(), a.Name())
	})
	s.Check("META-02", "generateName: a name that is given is kept", func(t *T) {
		o := t.POST(t.In("configmaps"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed, generateName: job-}}`).OK().Obj()
		t.Eq("name", o.Name(), "fixed")
	})
	s.Check("META-03", "uid: unique, randomly generated identifier", func(t *T) {
		a, b := t.CM("a"), t.CM("b")
		t.True(a.UID() != "" && b.UID() != "", "non-empty uids, got %q and %q", a.UID(), b.UID())
		t.Ne("uid of another object", b.UID(), a.UID())
	})
	s.Check("META-04", "uid: set by the server and not changed by an update", func(t *T) {
		a := t.CM("a")
		b := a.Copy().Set("data.k", "v")
		t.Eq("uid after PUT", t.PUT(t.In("configmaps")+"/a", b).OK().Obj().UID(), a.UID())
	})
	s.Check("META-05", "creationTimestamp: time of creation, set by the server", func(t *T) {
		o := t.POST(t.In("configmaps"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, creationTimestamp: "2001-02-03T04:05:06Z"}}`).OK().Obj()
		at, err := time.Parse(time.RFC3339, o.Str("metadata.creationTimestamp"))
		t.True(err == nil, "an RFC 3339 creationTimestamp, got %q", o.Str("metadata.creationTimestamp"))
		t.True(time.Since(at).Abs() < time.Minute, "a creationTimestamp near now (a client's value is not used), got %v", at)
	})
	s.Check("META-06", "resourceVersion: the version at which the object was last modified", func(t *T) {
		a := t.CM("a")
		t.CM("other")
		t.Eq("resourceVersion after another object changed", t.GET(t.In("configmaps")+"/a").OK().Obj().RV(), a.RV())
		b := t.PATCH(MergePatch, t.In("configmaps")+"/a", `{data: {k: v}}`).OK().Obj()
		t.Ne("resourceVersion after a change", b.RV(), a.RV())
	})
	s.Check("META-07", "resourceVersion: clients pass it back unmodified; a stale one is refused on update", func(t *T) {
		a := t.CM("a")
		t.PATCH(MergePatch, t.In("configmaps")+"/a", `{data: {k: "1"}}`).OK()
		t.PUT(t.In("configmaps")+"/a", a.Copy().Set("data.k", "2")).Status(409, "Conflict")
		t.Eq("data after the refused PUT", t.GET(t.In("configmaps")+"/a").OK().Obj().Str("data.k"), "1")
	})
	s.Check("META-14", "resourceVersion: one that is no string is refused, not left out", func(t *T) {
		a := t.CM("a")
		at := t.In("configmaps") + "/a"
		t.PUT(at, a.Copy().Set("metadata.resourceVersion", 1).Set("data.k", "1")).Status(400, "BadRequest")
		t.PUT(at, a.Copy().Set("metadata.uid", 1).Set("data.k", "1")).Status(400, "BadRequest")
		t.PATCH(MergePatch, at, `{metadata: {resourceVersion: 1}, data: {k: "1"}}`).Status(422, "Invalid")
		t.POST(t.In("configmaps"), `{apiVersion: v1, kind: ConfigMap, metadata: b}`).Status(400, "BadRequest")
		t.POST(t.In("configmaps"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: [x]}}`).Status(400, "BadRequest")
		t.Eq("resourceVersion afterwards", t.GET(at).OK().Obj().Str("metadata.resourceVersion"), a.Str("metadata.resourceVersion"))
	})
	s.Check("META-15", "name: those of events and disruption budgets are any path segment", func(t *T) {
		t.POST(t.In("events"), `{apiVersion: v1, kind: Event, metadata: {name: "system:Node_a.1"}, involvedObject: {kind: Node, name: a, namespace: `+t.NS()+`}}`).OK()
		t.GET(t.In("events") + "/system:Node_a.1").OK()
		t.POST("/apis/policy/v1/namespaces/"+t.NS()+"/poddisruptionbudgets", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: Upper_case}}`).OK()
		t.POST(t.In("events"), `{apiVersion: v1, kind: Event, metadata: {name: "a%b"}, involvedObject: {kind: Node, name: a, namespace: `+t.NS()+`}}`).Status(422, "Invalid")
	})
	s.Check("META-16", "name: a limit range needs none", func(t *T) {
		made := t.POST(t.In("limitranges"), `{apiVersion: v1, kind: LimitRange, metadata: {}}`).OK().Obj()
		t.True(len(made.Str("metadata.name")) == 36, "a UUID for a name, got %q", made.Str("metadata.name"))
		t.GET(t.In("limitranges") + "/" + made.Str("metadata.name")).OK()
	})
	s.Check("META-17", "generation: counts labels of an endpoint slice, and what may change in a storage driver", func(t *T) {
		at := "/apis/discovery.platform.io/v1/namespaces/" + t.NS() + "/endpointslices"
		t.POST(at, `{apiVersion: discovery.platform.io/v1, kind: EndpointSlice, metadata: {name: a}, addressType: IPv4, endpoints: []}`).OK()
		o := t.PATCH(MergePatch, at+"/a", `{metadata: {labels: {a: b}}}`).OK().Obj()
		t.Eq("generation of the slice", o.Num("metadata.generation"), 2.0)
		driver := t.Name("driver")
		t.POST("/apis/storage.platform.io/v1/csidrivers", `{apiVersion: storage.platform.io/v1, kind: CSIDriver, metadata: {name: `+driver+`}, spec: {}}`).OK()
		o = t.PATCH(MergePatch, "/apis/storage.platform.io/v1/csidrivers/"+driver, `{spec: {requiresRepublish: true}}`).OK().Obj()
		t.Eq("generation of the driver", o.Num("metadata.generation"), 1.0)
		t.DELETE("/apis/storage.platform.io/v1/csidrivers/"+driver, nil).OK()
	})
	s.Check("META-08", "namespace: namespace of a namespace-scoped object, set from the path", func(t *T) {
		t.Eq("namespace", t.CM("a").Str("metadata.namespace"), t.NS())
	})
	s.Check("META-09", "namespace: a cluster-scoped object has none", func(t *T) {
		o := t.GET("/api/v1/namespaces/" + t.NS()).OK().Obj()
		t.True(!o.Has("metadata.namespace"), "no metadata.namespace, got %q", o.Str("metadata.namespace"))
	})
	s.Check("META-10", "name: unique within its scope", func(t *T) {
		t.CM("a")
		t.POST(t.In("configmaps"), ConfigMap("a")).Status(409, "AlreadyExists")
		other := t.NewNS()
		t.POST(In(other, "configmaps"), ConfigMap("a")).OK()
	})
	s.Check("META-11", "labels and annotations: maps of strings, kept as given", func(t *T) {
		o := t.POST(t.In("configmaps"), `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {app: x, example.com/tier: back}, annotations: {example.com/note: "any text: 1, 2", empty: ""}}`).OK().Obj()
		t.Eq("labels", o.At("metadata.labels"), Obj{"app": "x", "example.com/tier": "back"})
		t.Eq("annotations", o.At("metadata.annotations"), Obj{"example.com/note": "any text: 1, 2", "empty": ""})
	})
	s.Check("META-12", "finalizers: shared field that any permitted actor may reorder", func(t *T) {
		t.POST(t.In("configmaps"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/one, example.com/two]}}`).OK()
		actor := t.User()
		t.GrantIn(t.NS(), actor.Name, `[{apiGroups: [""], resources: [configmaps], verbs: [patch]}]`)
		o := t.Allowed(func() *Resp {
			return t.PATCH(MergePatch, t.In("configmaps")+"/a", `{metadata: {finalizers: [example.com/two, example.com/one]}}`, As(actor))
		}).OK().Obj()
		t.Eq("finalizers", o.At("metadata.finalizers"), []string{"example.com/two", "example.com/one"})
		t.PATCH(MergePatch, t.In("configmaps")+"/a", `{metadata: {finalizers: null}}`).OK()
	})
	s.Check("META-13", "every object has kind and apiVersion: <version> for the core group", func(t *T) {
		t.CM("a")
		o := t.GET(t.In("configmaps") + "/a").OK().Obj()
		t.Eq("apiVersion", o.Str("apiVersion"), "v1")
		t.Eq("kind", o.Str("kind"), "ConfigMap")
	})
	s.Check("META-18", "typed clients find what is empty as null: times of conditions, lists that are always there", func(t *T) {
		t.PodReady()
		t.POST(t.In("pods"), Pod("a")).OK()
		o := t.PATCH(MergePatch, t.In("pods")+"/a/status", `{status: {conditions: [{type: example.com/c, status: "True"}]}}`).OK().Obj()
		for _, field := range []string{"lastTransitionTime", "lastProbeTime"} {
			value, given := o.List("status.conditions")[0][field]
			t.True(given && value == nil, "%s is null, got %v", field, value)
		}
		o = t.POST(t.In("discovery.platform.io/v1/endpointslices"), `{apiVersion: discovery.platform.io/v1, kind: EndpointSlice, metadata: {name: a}, addressType: IPv4, endpoints: []}`).OK().Obj()
		for _, field := range []string{"endpoints", "ports"} {
			value, given := o[field]
			t.True(given && value == nil, "%s is null, got %v", field, value)
		}
	})
	s.Check("META-19", "the creationTimestamp of a pod template is null, as typed clients write it", func(t *T) {
		d := Deployment("a", 0)
		first := t.POST(t.In("apps/v1/deployments"), d).OK().Obj()
		value, given := first.Map("spec.template.metadata")["creationTimestamp"]
		t.True(given && value == nil, "creationTimestamp is null, got %v", value)
		d.Map("spec.template.metadata")["creationTimestamp"] = nil
		second := t.PUT(t.In("apps/v1/deployments")+"/a", d).OK().Obj()
		t.Eq("generation after the same object with a null", second.Num("metadata.generation"), 1)
		t.Eq("resourceVersion", second.RV(), first.RV())
	}, PlatformOnly("left out since 1.34"))
}
