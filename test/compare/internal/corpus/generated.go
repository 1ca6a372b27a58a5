package corpus

import (
	"fmt"
	"net/http"
	"slices"
)

// fieldCases tests every field that both documents have: in a create, in an update and,
// below status, in an update of the status.
func (w *walker) fieldCases(k *Kind) []Case {
	schema := w.portico.Of(k.Kind)
	if schema == nil {
		return nil
	}
	var spec []field
	for _, top := range schema.Fields() {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, top) {
			spec = append(spec, w.fields(k, top)...)
		}
	}
	all := []Case{w.fieldCreates(k, spec)}
	if slices.Contains(k.Verbs, "update") {
		all = append(all, w.fieldUpdates(k, spec), w.fieldPatches(k, spec))
	}
	if slices.Contains(k.Subresources, "status") {
		all = append(all, w.fieldStatuses(k))
	}
	return all
}

func (w *walker) fieldCreates(k *Kind, fields []field) Case {
	const name = "field-creates"
	c := Case{Kind: k, Name: name}
	for _, f := range fields {
		for _, v := range w.variants(f) {
			c.Steps = append(c.Steps, Step{Name: fmt.Sprintf("%s/%s", f.String(), v.name), Method: http.MethodPost, Path: k.collection(), Query: "dryRun=All",
				Body: w.set(k.object(name), k, f, v.value)})
		}
	}
	return c
}

func (w *walker) fieldUpdates(k *Kind, fields []field) Case {
	const name = "field-updates"
	path := k.path(k.name(name))
	c := k.named(name, []Step{begin(k, name)})
	for _, f := range fields {
		for _, v := range w.variants(f) {
			if v.name != "set" && v.name != "null" && v.name != "empty" {
				continue
			}
			c.Steps = append(c.Steps, Step{Name: fmt.Sprintf("%s/%s", f.String(), v.name), Method: http.MethodPut, Path: path, Query: "dryRun=All", Needs: "begin",
				Body: again("begin", func(o object) { w.put(o, w.portico.Of(k.Kind), f.path, clone(v.value)) })})
		}
	}
	c.Steps = append(c.Steps, end(k, name)...)
	return c
}

// fieldPatches sends each field by itself, as a patch of each type.
func (w *walker) fieldPatches(k *Kind, fields []field) Case {
	const name = "field-patches"
	path := k.path(k.name(name))
	c := k.named(name, []Step{begin(k, name)})
	for _, f := range fields {
		for _, v := range w.variants(f) {
			for _, t := range []struct{ name, mediaType, query string }{
				{"merge", mergePatch, ""}, {"strategic", strategyPatch, ""}, {"apply", applyPatch, "&fieldManager=m&force=true"},
			} {
				if !patched(t.name, v.name) {
					continue
				}
				body := object{}
				if t.mediaType == applyPatch {
					body = object{"apiVersion": k.minimal["apiVersion"], "kind": k.Kind.Kind}
				}
				w.put(body, w.portico.Of(k.Kind), f.path, clone(v.value))
				c.Steps = append(c.Steps, Step{Name: fmt.Sprintf("%s/%s-%s", f.String(), v.name, t.name), Method: http.MethodPatch, Path: path, Query: "dryRun=All" + t.query,
					Type: t.mediaType, Body: body, Needs: "begin"})
			}
		}
	}
	c.Steps = append(c.Steps, end(k, name)...)
	return c
}

// patched reports whether a variant is sent in a type of patch: values of a wrong type in all,
// others where the type treats them in its own way.
func patched(patch, variant string) bool {
	switch variant {
	case "set", "twice":
		return patch != "merge"
	case "null":
		return patch == "strategic"
	case "text", "number", "null-item", "null-value":
		return true
	case "empty":
		return patch == "apply"
	}
	return false
}

func (w *walker) fieldStatuses(k *Kind) Case {
	const name = "field-statuses"
	path := k.path(k.name(name))
	c := k.named(name, []Step{begin(k, name)})
	for _, f := range w.fields(k, "status") {
		for _, v := range w.variants(f) {
			c.Steps = append(c.Steps, Step{Name: fmt.Sprintf("%s/%s", f.String(), v.name), Method: http.MethodPut, Path: path + "/status", Query: "dryRun=All", Needs: "begin",
				Body: again("begin", func(o object) { w.put(o, w.portico.Of(k.Kind), f.path, clone(v.value)) })})
		}
	}
	c.Steps = append(c.Steps, end(k, name)...)
	return c
}

// statuses tests the status subresource as a whole.
func (w *walker) statuses(k *Kind) Case {
	const name = "statuses"
	path := k.path(k.name(name))
	status := w.sample("status", w.portico.Of(k.Kind).Properties["status"])
	put := func(step, query string, change func(object)) Step {
		return Step{Name: step, Method: http.MethodPut, Path: path + "/status", Query: query, Body: again("begin", change), Needs: "begin"}
	}
	patch := func(step, mediaType, query string, body any) Step {
		return Step{Name: step, Method: http.MethodPatch, Path: path + "/status", Query: query, Type: mediaType, Body: body}
	}
	unversioned := func(o object) { delete(child(o, "metadata"), "resourceVersion") }
	steps := []Step{
		begin(k, name),
		{Name: "get", Method: http.MethodGet, Path: path + "/status"}, {Name: "get-table", Method: http.MethodGet, Path: path + "/status", Accept: tableAccept()},
		put("same", "", same), put("dry", "dryRun=All", func(o object) { unversioned(o); o["status"] = status }),
		put("status", "", func(o object) { unversioned(o); o["status"] = status }),
		put("label", "", func(o object) { unversioned(o); label("a", "b")(o) }),
		put("annotation", "", func(o object) { unversioned(o); child(child(o, "metadata"), "annotations")["a"] = "b" }),
		put("finalizer", "", func(o object) { unversioned(o); child(o, "metadata")["finalizers"] = []any{"example.com/a"} }),
		put("spec", "", func(o object) { unversioned(o); delete(o, "spec") }),
		put("stale", "", func(o object) { child(o, "metadata")["resourceVersion"] = "1" }),
		patch("merge", mergePatch, "", `{"status":{},"metadata":{"labels":{"a":"c"}}}`), patch("merge-null", mergePatch, "", `{"status":null}`),
		patch("json", jsonPatch, "", `[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`),
		patch("apply", applyPatch, "fieldManager=s&force=true", object{"apiVersion": k.minimal["apiVersion"], "kind": k.Kind.Kind, "metadata": object{"name": k.name(name)}, "status": status}),
		{Name: "post", Method: http.MethodPost, Path: path + "/status", Body: k.object(name)}, {Name: "delete", Method: http.MethodDelete, Path: path + "/status"},
		{Name: "missing", Method: http.MethodGet, Path: k.path("missing") + "/status"},
		{Name: "put-missing", Method: http.MethodPut, Path: k.path("missing") + "/status", Body: named(k.minimal, "missing")},
		{Name: "unknown", Method: http.MethodGet, Path: path + "/unknown"},
		{Name: "put-main-status", Method: http.MethodPut, Path: path, Query: "dryRun=All", Body: again("begin", func(o object) { unversioned(o); o["status"] = status })},
	}
	return k.named(name, append(steps, end(k, name)...))
}

// scales tests the scale subresource.
func scales(k *Kind) Case {
	const name = "scales"
	path := k.path(k.name(name)) + "/scale"
	put := func(step, query string, change func(object)) Step {
		return Step{Name: step, Method: http.MethodPut, Path: path, Query: query, Body: again("get", change), Needs: "get"}
	}
	replicas := func(value any) func(object) {
		return func(o object) {
			child(o, "spec")["replicas"] = value
			delete(child(o, "metadata"), "resourceVersion")
		}
	}
	patch := func(step, mediaType, query, body string) Step {
		return Step{Name: step, Method: http.MethodPatch, Path: path, Query: query, Type: mediaType, Body: body}
	}
	steps := []Step{
		begin(k, name), {Name: "get", Method: http.MethodGet, Path: path}, {Name: "get-table", Method: http.MethodGet, Path: path, Accept: tableAccept()},
		put("same", "", same), put("dry", "dryRun=All", replicas(3)), put("three", "", replicas(3)), put("zero", "", replicas(0)), put("none", "", func(o object) { replicas(0)(o); delete(o, "spec") }),
		put("negative", "", replicas(-1)), put("text", "", replicas("x")), put("stale", "", func(o object) { child(o, "metadata")["resourceVersion"] = "1" }),
		put("other-name", "", func(o object) { replicas(2)(o); child(o, "metadata")["name"] = "other" }), put("uid", "", func(o object) { replicas(2)(o); child(o, "metadata")["uid"] = "other" }),
		put("kind", "", func(o object) { replicas(2)(o); o["kind"] = "Other" }),
		patch("merge", mergePatch, "", `{"spec":{"replicas":4}}`), patch("merge-dry", mergePatch, "dryRun=All", `{"spec":{"replicas":5}}`),
		patch("strategic", strategyPatch, "", `{"spec":{"replicas":5}}`), patch("json", jsonPatch, "", `[{"op":"replace","path":"/spec/replicas","value":6}]`),
		patch("negative-patch", mergePatch, "", `{"spec":{"replicas":-1}}`), patch("null", mergePatch, "", `{"spec":{"replicas":null}}`),
		patch("apply", applyPatch, "fieldManager=s&force=true", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"`+k.name(name)+`"},"spec":{"replicas":7}}`),
		{Name: "post", Method: http.MethodPost, Path: path, Body: "{}"}, {Name: "delete", Method: http.MethodDelete, Path: path},
		{Name: "missing", Method: http.MethodGet, Path: k.path("missing") + "/scale"}, {Name: "after", Method: http.MethodGet, Path: k.path(k.name(name))},
	}
	return k.named(name, append(steps, end(k, name)...))
}
