package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func patches() {
	s := Section("Patch content types")

	s.Check("PATCH-01", "application/merge-patch+json: set, change, remove with null", func(t *T) {
		t.CM("a", "keep", "1", "change", "2", "drop", "3")
		o := t.PATCH(MergePatch, t.In("configmaps")+"/a", `{data: {change: "two", drop: null, new: "4"}}`).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"keep": "1", "change": "two", "new": "4"})
	})
	s.Check("PATCH-02", "application/merge-patch+json: lists are replaced as a whole", func(t *T) {
		path := t.In("apps/v1/deployments")
		t.POST(path, Deployment("a", 0)).OK()
		o := t.PATCH(MergePatch, path+"/a", `{spec: {template: {spec: {containers: [{name: other, image: "registry.example.com/o:1"}]}}}}`).OK().Obj()
		list := o.List("spec.template.spec.containers")
		t.Eq("number of containers", len(list), 1)
		t.Eq("name", list[0].Str("name"), "other")
	})
	s.Check("PATCH-03", "application/json-patch+json: add, replace, remove, move, copy, test", func(t *T) {
		t.CM("a", "k", "1", "l", "2", "m", "3")
		o := t.PATCH(JSONPatch, t.In("configmaps")+"/a", `[
			{op: test, path: /data/k, value: "1"}, {op: replace, path: /data/k, value: one},
			{op: remove, path: /data/l}, {op: add, path: /data/n, value: "4"},
			{op: move, from: /data/m, path: /data/moved}, {op: copy, from: /data/n, path: /data/copied}]`).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "one", "n": "4", "moved": "3", "copied": "4"})
	})
	s.Check("PATCH-04", "strategic merge patch: a list with a merge key is merged by the key", func(t *T) {
		path := t.In("apps/v1/deployments")
		t.POST(path, Deployment("a", 0)).OK()
		o := t.PATCH(StrategicPatch, path+"/a", `{spec: {template: {spec: {containers: [{name: side, image: "registry.example.com/s:1"}]}}}}`).OK().Obj()
		names := map[string]string{}
		for _, c := range o.List("spec.template.spec.containers") {
			names[c.Str("name")] = c.Str("image")
		}
		t.Eq("containers", names, map[string]string{"main": "registry.example.com/app:1", "side": "registry.example.com/s:1"})
	})
	s.Check("PATCH-05", "application/apply-patch+yaml: YAML body", func(t *T) {
		o := t.Apply("m", t.In("configmaps")+"/a", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n# a comment\ndata:\n  k: |\n    two\n    lines\n").OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "two\nlines\n"})
	})
	s.Check("PATCH-06", "application/apply-patch+yaml: JSON is accepted as valid YAML", func(t *T) {
		o := t.Apply("m", t.In("configmaps")+"/a", ConfigMap("a", "k", "v")).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "v"})
	})
	s.Check("PATCH-07", "custom resources: merge patch and JSON patch", func(t *T) {
		c := t.CRD(AnySchema)
		path := t.In(c.Resource())
		t.POST(path, c.Object("a", "spec: {list: [1, 2], keep: x}")).OK()
		o := t.PATCH(MergePatch, path+"/a", `{spec: {list: [3]}}`).OK().Obj()
		t.Eq("spec", o.At("spec"), Obj{"list": []int{3}, "keep": "x"})
		o = t.PATCH(JSONPatch, path+"/a", `[{op: add, path: /spec/list/-, value: 4}]`).OK().Obj()
		t.Eq("spec.list", o.At("spec.list"), []int{3, 4})
	})
	s.Check("PATCH-08", "JSON patch: a test that fails refuses the whole patch", func(t *T) {
		t.CM("a", "k", "1")
		status := t.PATCH(JSONPatch, t.In("configmaps")+"/a", `[{op: add, path: /data/l, value: "2"}, {op: test, path: /data/k, value: "other"}]`).Status(422, "Invalid")
		t.Eq("message", status.Str("message"), "the server rejected our request due to an error in our request")
		t.Eq("data", t.GET(t.In("configmaps")+"/a").OK().Obj().At("data"), Obj{"k": "1"})
	})
	s.Check("PATCH-09", "JSON patch: an operation that is none cannot be applied (422), what is no patch is malformed (400)", func(t *T) {
		t.CM("a", "k", "v")
		path := t.In("configmaps") + "/a"
		for _, operation := range []string{`{op: other, path: /data/k, value: w}`, `{path: /data/k, value: w}`, `{op: add, value: w}`} {
			t.PATCH(JSONPatch, path, "["+operation+"]").Status(422, "Invalid")
		}
		t.PATCH(JSONPatch, path, `{op: remove, path: /data/k}`).Status(400, "BadRequest")
		t.Eq("data", t.GET(path).OK().Obj().At("data"), Obj{"k": "v"})
	})
	s.Check("PATCH-10", "JSON patch: replace sets a field that is missing, but not one of a missing object", func(t *T) {
		t.CM("a", "k", "1")
		path := t.In("configmaps") + "/a"
		o := t.PATCH(JSONPatch, path, `[{op: replace, path: /data/l, value: "2"}]`).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "1", "l": "2"})
		t.PATCH(JSONPatch, path, `[{op: replace, path: /none/l, value: "2"}]`).Status(422, "Invalid")
	})
	s.Check("PATCH-11", "fieldValidation finds unknown members of JSON patches and repeated keys of YAML", func(t *T) {
		t.CM("a", "k", "1")
		path := t.In("configmaps") + "/a"
		t.PATCH(JSONPatch, path+"?fieldValidation=Strict", `[{op: replace, path: /data/k, value: "2", other: 1}]`).Status(422, "Invalid")
		config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: one, k: two}\n"
		status := t.Apply("m", path, config, "fieldValidation=Strict").Status(400, "BadRequest")
		t.Contains("message", status.Str("message"), `key "k" already set in map`)
		t.Eq("data", t.GET(path).OK().Obj().At("data"), Obj{"k": "1"})
	})
	s.Check("PATCH-12", "strategic merge patch: a value of a wrong type cannot be applied (422)", func(t *T) {
		t.CM("a", "k", "1")
		path := t.In("configmaps") + "/a"
		status := t.PATCH(StrategicPatch, path, `{metadata: {labels: text}}`).Status(422, "Invalid")
		t.Contains("message", status.Str("message"), "cannot restore map from string")
		t.Eq("data", t.GET(path).OK().Obj().At("data"), Obj{"k": "1"})
	})
}
