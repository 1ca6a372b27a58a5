package corpus

import "net/http"

// patcher returns a function that creates patch requests for the object of a case.
func patcher(k *Kind, name string) func(step, mediaType, query string, body any) Step {
	return func(step, mediaType, query string, body any) Step {
		return Step{Name: step, Method: http.MethodPatch, Path: k.path(k.name(name)), Query: query, Type: mediaType, Body: body}
	}
}

func jsonPatches(k *Kind) Case {
	const name = "json-patches"
	patch := patcher(k, name)
	of := func(step, body string) Step { return patch(step, jsonPatch, "", body) }
	try := func(step, body string) Step { return patch(step, jsonPatch, "dryRun=All", body) }
	steps := []Step{
		begin(k, name),
		patch("add-dry", jsonPatch, "dryRun=All", `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`),
		of("add", `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`),
		of("same", `[{"op":"replace","path":"/metadata/labels/a","value":"b"}]`),
		of("replace", `[{"op":"replace","path":"/metadata/labels/a","value":"c"}]`),
		of("copy", `[{"op":"copy","from":"/metadata/labels/a","path":"/metadata/labels/d"}]`),
		of("move", `[{"op":"move","from":"/metadata/labels/d","path":"/metadata/labels/e"}]`),
		of("remove", `[{"op":"remove","path":"/metadata/labels/e"}]`),
		try("remove-missing", `[{"op":"remove","path":"/metadata/labels/e"}]`),
		try("replace-missing", `[{"op":"replace","path":"/metadata/labels/e","value":"x"}]`),
		try("add-nowhere", `[{"op":"add","path":"/no/where","value":1}]`),
		try("test", `[{"op":"test","path":"/metadata/labels/a","value":"c"}]`),
		try("test-fails", `[{"op":"test","path":"/metadata/labels/a","value":"x"}]`),
		try("name", `[{"op":"replace","path":"/metadata/name","value":"other"}]`),
		try("uid", `[{"op":"replace","path":"/metadata/uid","value":"other"}]`),
		try("label-number", `[{"op":"add","path":"/metadata/labels/n","value":5}]`),
		try("whole", `[{"op":"replace","path":"","value":{}}]`),
		try("unknown", `[{"op":"add","path":"/unknown","value":5}]`),
		try("version", `[{"op":"replace","path":"/metadata/resourceVersion","value":"1"}]`),
		try("odd-op", `[{"op":"other","path":"/metadata/labels"}]`), try("no-op", `[{"path":"/metadata/labels"}]`), try("no-path", `[{"op":"add","value":1}]`),
		try("empty-list", `[]`), try("empty", ``), try("null", `null`), try("object", `{"metadata":{}}`), try("open", `[{`), try("text", `"x"`),
		{Name: "missing", Method: http.MethodPatch, Path: k.path("missing"), Type: jsonPatch, Body: `[{"op":"add","path":"/metadata/labels","value":{}}]`},
		of("fields", `[{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}]`),
		patch("force", jsonPatch, "force=true", `[]`),
		patch("odd-type", "application/other", "", `[]`), patch("no-type", jsonType, "", `{}`),
	}
	return k.named(name, append(steps, end(k, name)...))
}

func mergePatches(k *Kind) Case {
	const name = "merge-patches"
	patch := patcher(k, name)
	steps := []Step{begin(k, name)}
	for _, t := range []struct{ name, mediaType string }{{"merge", mergePatch}, {"strategic", strategyPatch}} {
		of := func(step, query, body string) Step { return patch(t.name+"-"+step, t.mediaType, query, body) }
		steps = append(steps,
			of("label-dry", "dryRun=All", `{"metadata":{"labels":{"a":"b"}}}`),
			of("label", "fieldManager=m", `{"metadata":{"labels":{"a":"b"}}}`),
			of("same", "", `{"metadata":{"labels":{"a":"b"}}}`),
			of("nothing", "", `{}`),
			of("finalizer", "", `{"metadata":{"finalizers":["example.com/a"]}}`),
			of("finalizer-more", "dryRun=All", `{"metadata":{"finalizers":["example.com/b"]}}`),
			of("finalizers-gone", "", `{"metadata":{"finalizers":null}}`),
			of("label-gone", "", `{"metadata":{"labels":{"a":null}}}`),
			of("labels-gone", "", `{"metadata":{"labels":null}}`),
			of("label-number", "dryRun=All", `{"metadata":{"labels":{"a":1}}}`),
			of("label-odd", "dryRun=All", `{"metadata":{"labels":{"not valid !":"x"}}}`),
			of("labels-text", "dryRun=All", `{"metadata":{"labels":"x"}}`),
			of("name", "dryRun=All", `{"metadata":{"name":"other"}}`), of("uid", "dryRun=All", `{"metadata":{"uid":"other"}}`), of("version", "dryRun=All", `{"metadata":{"resourceVersion":"1"}}`),
			of("kind", "dryRun=All", `{"kind":"Other"}`), of("api-version", "dryRun=All", `{"apiVersion":"other/v1"}`),
			of("unknown", "dryRun=All", `{"unknown":1}`), of("strict", "dryRun=All&fieldValidation=Strict", `{"unknown":1}`),
			of("spec-null", "dryRun=All", `{"spec":null}`), of("metadata-null", "dryRun=All", `{"metadata":null}`),
			of("list", "", `[]`), of("empty", "", ``), of("null", "", `null`), of("text", "", `"x"`), of("open", "", `{"a"`),
			of("directive", "dryRun=All", `{"metadata":{"labels":{"$patch":"replace","x":"y"}}}`),
			of("delete-primitive", "dryRun=All", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`),
			of("odd-directive", "dryRun=All", `{"metadata":{"$patch":"other"}}`),
			Step{Name: t.name + "-missing", Method: http.MethodPatch, Path: k.path("missing"), Type: t.mediaType, Body: `{"metadata":{"labels":{"a":"b"}}}`},
		)
	}
	return k.named(name, append(steps, end(k, name)...))
}

func applies(k *Kind) Case {
	const name = "applies"
	patch := patcher(k, name)
	of := func(step, query string, body any) Step { return patch(step, applyPatch, query, body) }
	o := k.object(name)
	steps := []Step{
		of("no-manager", "", o), of("create-dry", "fieldManager=one&dryRun=All", o),
		of("create", "fieldManager=one", o), of("again", "fieldManager=one", o),
		of("label", "fieldManager=one", labelled(o, "a", "one")),
		of("other-same", "fieldManager=two", labelled(o, "a", "one")),
		of("conflict", "fieldManager=two", labelled(o, "a", "two")),
		of("conflict-dry", "fieldManager=two&dryRun=All", labelled(o, "a", "two")),
		of("force", "fieldManager=two&force=true", labelled(o, "a", "two")),
		of("drop", "fieldManager=one", o),
		of("give-up", "fieldManager=two", o),
		of("managed", "fieldManager=one&dryRun=All", with(o, func(o object) { child(o, "metadata")["managedFields"] = []any{object{}} })),
		of("unknown", "fieldManager=one&dryRun=All", with(o, func(o object) { o["unknown"] = 1 })),
		of("other-kind", "fieldManager=one&dryRun=All", with(o, func(o object) { o["kind"] = "Other" })),
		of("other-version", "fieldManager=one&dryRun=All", with(o, func(o object) { o["apiVersion"] = "other/v1" })),
		of("no-kind", "fieldManager=one&dryRun=All", with(o, func(o object) { delete(o, "kind") })),
		of("no-version", "fieldManager=one&dryRun=All", with(o, func(o object) { delete(o, "apiVersion") })),
		of("other-name", "fieldManager=one&dryRun=All", with(o, func(o object) { child(o, "metadata")["name"] = "other" })),
		of("no-name", "fieldManager=one&dryRun=All", with(o, func(o object) { delete(child(o, "metadata"), "name") })),
		of("other-namespace", "fieldManager=one&dryRun=All", with(o, func(o object) { child(o, "metadata")["namespace"] = "other" })),
		of("uid", "fieldManager=one&dryRun=All", with(o, func(o object) { child(o, "metadata")["uid"] = "other" })),
		of("version", "fieldManager=one&dryRun=All", with(o, func(o object) { child(o, "metadata")["resourceVersion"] = "1" })),
		of("label-number", "fieldManager=one&dryRun=All", with(o, func(o object) { child(child(o, "metadata"), "labels")["a"] = 1 })),
		of("empty", "fieldManager=one&dryRun=All", ""), of("null", "fieldManager=one&dryRun=All", "null"), of("list", "fieldManager=one&dryRun=All", "[]"), of("open", "fieldManager=one&dryRun=All", "a: [b"),
		of("force-odd", "fieldManager=one&force=x", o),
		patch("update", mergePatch, "fieldManager=updater", `{"metadata":{"labels":{"a":"three"}}}`),
		of("conflict-updater", "fieldManager=one", labelled(o, "a", "four")),
	}
	if k.full != nil {
		steps = append(steps, of("full", "fieldManager=one&force=true&dryRun=All", named(k.full, k.name(name))))
	}
	return k.named(name, append(steps, end(k, name)...))
}
