package checks

import (
	"fmt"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func apply() {
	s := Section("Server-side apply")

	path := func(t *T) string { return t.In("configmaps") + "/a" }
	owns := func(t *T, o Obj, manager, key string, want bool) {
		t.Eq(fmt.Sprintf("manager %s owns data.%s", manager, key), o.Owns(manager, "", "f:data", "f:"+key), want)
	}
	s.Check("SSA-01", "apply creates an object that does not exist", func(t *T) {
		o := t.Apply("one", path(t), DataOfA("{k: v}")).OK().Obj()
		t.True(o.UID() != "", "a uid")
		owns(t, o, "one", "k", true)
	})
	s.Check("SSA-02", "rule 1: the last manager to set a value owns it, whatever the verb", func(t *T) {
		o := t.Apply("one", path(t), DataOfA("{a: '1', b: '1', c: '1', d: '1'}")).OK().Obj()
		o = t.PUT(path(t)+"?fieldManager=put", o.Copy().Set("data.a", "2")).OK().Obj()
		o = t.PATCH(MergePatch, path(t)+"?fieldManager=merge", `{data: {b: "2"}}`).OK().Obj()
		o = t.PATCH(JSONPatch, path(t)+"?fieldManager=json", `[{op: replace, path: /data/c, value: "2"}]`).OK().Obj()
		owns(t, o, "put", "a", true)
		owns(t, o, "one", "a", false)
		owns(t, o, "merge", "b", true)
		owns(t, o, "one", "b", false)
		owns(t, o, "json", "c", true)
		owns(t, o, "one", "c", false)
		owns(t, o, "one", "d", true)
	})
	s.Check("SSA-03", "rule 2: applying another value than another manager's: conflict, request rejected", func(t *T) {
		t.Apply("one", path(t), DataOfA("{k: v}")).OK()
		t.Conflict(t.Apply("two", path(t), DataOfA("{k: w, other: x}")), "one", ".data.k")
		t.Eq("data", t.GET(path(t)).Is(200).Obj().At("data"), Obj{"k": "v"})
	})
	s.Check("SSA-04", "rule 2: a field set by an update conflicts with an apply too", func(t *T) {
		t.POST(t.In("configmaps")+"?fieldManager=maker", ConfigMap("a", "k", "v")).OK()
		t.Conflict(t.Apply("two", path(t), DataOfA("{k: w}")), "maker", ".data.k")
	})
	s.Check("SSA-05", "rule 2: update operations do not fail on conflicts", func(t *T) {
		o := t.Apply("one", path(t), DataOfA("{k: v}")).OK().Obj()
		t.PUT(path(t)+"?fieldManager=two", o.Copy().Set("data.k", "w")).OK()
		t.PATCH(MergePatch, path(t)+"?fieldManager=three", `{data: {k: x}}`).OK()
	})
	s.Check("SSA-06", "rule 3a: force=true changes the value and the applier becomes sole owner", func(t *T) {
		t.Apply("one", path(t), DataOfA("{k: v, mine: x}")).OK()
		o := t.Apply("two", path(t), DataOfA("{k: w}"), "force=true").OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "w", "mine": "x"})
		owns(t, o, "two", "k", true)
		owns(t, o, "one", "k", false)
		owns(t, o, "one", "mine", true)
	})
	s.Check("SSA-07", "rule 3b: remove the field from the config: value unchanged, claim dropped", func(t *T) {
		t.Apply("one", path(t), DataOfA("{k: v, l: v}")).OK()
		t.PATCH(MergePatch, path(t)+"?fieldManager=two", `{data: {k: w}}`).OK()
		o := t.Apply("one", path(t), DataOfA("{l: v}")).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "w", "l": "v"})
		owns(t, o, "one", "k", false)
		owns(t, o, "two", "k", true)
	})
	s.Check("SSA-08", "rule 4: removing a field that no one else owns removes it from the object", func(t *T) {
		t.Apply("one", path(t), DataOfA("{k: v, l: v}")).OK()
		o := t.Apply("one", path(t), DataOfA("{l: v}")).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"l": "v"})
	})
	s.Check("SSA-09", "rule 4: a removed field with a default is reset to its default", func(t *T) {
		p := t.In("apps/v1/deployments") + "/a"
		d := Deployment("a", 1)
		t.Apply("one", p, d.Copy().Set("spec.revisionHistoryLimit", 3)).OK()
		o := t.Apply("one", p, d).OK().Obj()
		t.Eq("spec.revisionHistoryLimit", o.Num("spec.revisionHistoryLimit"), 10)
	})
	s.Check("SSA-10", "rule 5: applied values win where both sides specify a field, others are kept", func(t *T) {
		t.POST(t.In("configmaps")+"?fieldManager=one", ConfigMap("a", "theirs", "1")).OK()
		o := t.Apply("one", path(t), DataOfA("{mine: '2'}")).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"theirs": "1", "mine": "2"})
	})
	s.Check("SSA-11", "rule 6: built-in list with a merge key is a map list: two managers own different items", func(t *T) {
		p := t.In("services") + "/a"
		service := func(port int, name string) Obj {
			return YAML(`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: %d, name: %s, protocol: TCP}]}}`, port, name)
		}
		t.Apply("one", p, service(80, "web")).OK()
		o := t.Apply("two", p, service(443, "tls")).OK().Obj()
		t.Eq("number of ports", len(o.List("spec.ports")), 2)
		t.Conflict(t.Apply("two", p, service(80, "other")), "one", ".spec.ports")
	})
	// One custom resource type with every kind of list and map.
	const marked = `{type: object, properties: {spec: {type: object, properties: {
		set: {type: array, x-platform-list-type: set, items: {type: string}},
		atomic: {type: array, x-platform-list-type: atomic, items: {type: string}},
		plain: {type: array, items: {type: string}},
		map: {type: array, x-platform-list-type: map, x-platform-list-map-keys: [key], items: {type: object, required: [key], properties: {key: {type: string}, value: {type: string}, more: {type: string}}}},
		pair: {type: array, x-platform-list-type: map, x-platform-list-map-keys: [host, port], items: {type: object, required: [host, port], properties: {host: {type: string}, port: {type: integer}, value: {type: string}}}},
		whole: {type: object, x-platform-map-type: atomic, additionalProperties: {type: string}},
		grains: {type: object, x-platform-map-type: granular, additionalProperties: {type: string}}}}}}`
	custom := func(id, says string, run func(t *T, apply func(manager, spec string, params ...string) *Resp)) {
		s.Check(id, says, func(t *T) {
			c := t.CRD(marked)
			run(t, func(manager, spec string, params ...string) *Resp {
				return t.Apply(manager, t.In(c.Resource())+"/a", c.Object("a", "spec: "+spec), params...)
			})
		})
	}
	type applyFunc = func(manager, spec string, params ...string) *Resp
	custom("SSA-12", "rule 6: list type set: each manager owns its own elements", func(t *T, apply applyFunc) {
		apply("one", "{set: [a, b]}").OK()
		o := apply("two", "{set: [b, c]}").OK().Obj()
		t.SameSet("elements", o.Strs("spec.set"), "a", "b", "c")
		o = apply("one", "{set: [a]}").OK().Obj()
		t.SameSet("elements after one dropped b (shared)", o.Strs("spec.set"), "a", "b", "c")
		o = apply("two", "{set: [c]}").OK().Obj()
		t.SameSet("elements after both dropped b", o.Strs("spec.set"), "a", "c")
	})
	custom("SSA-13", "rule 6: list type atomic: one owner of the whole list, another value conflicts", func(t *T, apply applyFunc) {
		apply("one", "{atomic: [a, b]}").OK()
		t.Conflict(apply("two", "{atomic: [b]}"), "one", ".spec.atomic")
		o := apply("two", "{atomic: [b]}", "force=true").OK().Obj()
		t.Eq("list", o.At("spec.atomic"), []string{"b"})
		t.Eq("one still owns the list", o.Owns("one", "", "f:spec", "f:atomic"), false)
	})
	custom("SSA-14", "rule 6: list type map: items are identified by their key", func(t *T, apply applyFunc) {
		apply("one", "{map: [{key: x, value: '1'}]}").OK()
		apply("two", "{map: [{key: z, value: '2'}]}").OK()
		o := apply("two", "{map: [{key: z, value: '2'}, {key: x, more: m}]}").OK().Obj()
		t.Eq("number of items", len(o.List("spec.map")), 2)
		for _, item := range o.List("spec.map") {
			if item.Str("key") == "x" {
				t.Eq("item x", item, Obj{"key": "x", "value": "1", "more": "m"})
			}
		}
		t.Conflict(apply("two", "{map: [{key: x, value: '9'}]}"), "one", `.spec.map[key="x"].value`)
	})
	custom("SSA-15", "rule 6: list type map: two items with the same key are refused", func(t *T, apply applyFunc) {
		r := apply("one", "{map: [{key: x, value: '1'}, {key: x, value: '2'}]}")
		t.True(r.Code >= 400, "an error status, got %d", r.Code)
	})
	custom("SSA-16", "rule 6: map type atomic: replaced and owned as a whole", func(t *T, apply applyFunc) {
		apply("one", "{whole: {a: '1', b: '2'}}").OK()
		t.Conflict(apply("two", "{whole: {c: '3'}}"), "one", ".spec.whole")
		o := apply("two", "{whole: {c: '3'}}", "force=true").OK().Obj()
		t.Eq("map", o.At("spec.whole"), Obj{"c": "3"})
	})
	s.Check("SSA-17", "rule 6: custom resources without schema annotations: keys are struct fields, lists atomic", func(t *T) {
		c := t.CRD(AnySchema)
		p := t.In(c.Resource()) + "/a"
		t.Apply("one", p, c.Object("a", "spec: {deep: {x: 1}, list: [{name: a}]}")).OK()
		o := t.Apply("two", p, c.Object("a", "spec: {deep: {w: 2}}")).OK().Obj()
		t.Eq("spec.deep", o.At("spec.deep"), Obj{"x": 1, "w": 2})
		t.Conflict(t.Apply("two", p, c.Object("a", "spec: {deep: {w: 2}, list: [{name: b}]}")), "one", ".spec.list")
	})
	s.Check("SSA-18", "rule 7: atomic to set: no inferred ownership and no conflict", func(t *T) {
		c := t.CRD(`{type: object, properties: {spec: {type: object, properties: {list: {type: array, x-platform-list-type: atomic, items: {type: string}}}}}}`)
		p := t.In(c.Resource()) + "/a"
		t.Apply("one", p, c.Object("a", "spec: {list: [a, b]}")).OK()
		t.Retype(c, "list", "set")
		o := t.Apply("two", p, c.Object("a", "spec: {list: [c]}")).OK().Obj()
		t.Includes("elements", o.Strs("spec.list"), "a", "b", "c")
	})
	s.Check("SSA-19", "rule 8: a patch setting managedFields to a list with one empty entry clears it", func(t *T) {
		t.Apply("one", path(t), DataOfA("{k: v}")).OK()
		o := t.PATCH(MergePatch, path(t), `{metadata: {managedFields: [{}]}}`).OK().Obj()
		t.Eq("number of entries", len(o.List("metadata.managedFields")), 0)
		t.Eq("data", o.At("data"), Obj{"k": "v"})
	})
	s.Check("SSA-20", "rule 8: an empty list does not reset it", func(t *T) {
		t.Apply("one", path(t), DataOfA("{k: v}")).OK()
		o := t.PATCH(MergePatch, path(t), `{metadata: {managedFields: []}}`).OK().Obj()
		owns(t, o, "one", "k", true)
	}, PlatformOnly("Kubernetes resets it with an empty list too, against its documentation"))
	s.Check("SSA-21", "rule 8: ownership is not tracked on subresources that do not receive the resource object type (scale)", func(t *T) {
		p := t.In("apps/v1/deployments")
		t.POST(p+"?fieldManager=maker", Deployment("a", 1)).OK()
		t.PATCH(MergePatch, p+"/a/scale?fieldManager=scaler", `{spec: {replicas: 4}}`).OK()
		t.True(t.GET(p+"/a").OK().Obj().Manager("scaler", "") == nil, "no entry of manager scaler")
	}, PlatformOnly("since 1.22 ownership of replicas is tracked through scale"))
	s.Check("SSA-22", "the applied object must not contain managedFields", func(t *T) {
		t.Apply("one", path(t), `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]}, "data": {"k": "v"}}`).ClientError()
		t.GET(path(t)).Is(404)
	})
	s.Check("SSA-23", "applying the same config again changes nothing", func(t *T) {
		a := t.Apply("one", path(t), DataOfA("{k: v}")).OK().Obj()
		b := t.Apply("one", path(t), DataOfA("{k: v}")).OK().Obj()
		t.Eq("resourceVersion", b.RV(), a.RV())
		t.Eq("managedFields", b.At("metadata.managedFields"), a.At("metadata.managedFields"))
	})
	s.Check("SSA-24", "apply through the name in the path; another name in the config is refused", func(t *T) {
		t.Apply("one", t.In("configmaps")+"/b", DataOfA("{k: v}")).ClientError()
	})
	s.Check("SSA-25", "feature gate ServerSideApply=false turns apply off", func(t *T) {
		t.Apply("one", In("default", "configmaps")+"/a", DataOfA("{k: v}")).ClientError()
		t.GET(In("default", "configmaps") + "/a").Is(404)
		t.POST(In("default", "configmaps"), ConfigMap("b")).OK()
		t.PATCH(MergePatch, In("default", "configmaps")+"/b", `{data: {k: v}}`).OK()
	}, On(NoApply))
}
