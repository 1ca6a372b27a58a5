package corpus

import (
	"net/http"
	"strings"
)

// begin returns the step that creates the object of a case.
func begin(k *Kind, name string) Step {
	return Step{Name: "begin", Method: http.MethodPost, Path: k.collection(), Body: k.object(name)}
}

// end returns the steps that delete the object: finalizers are removed first.
func end(k *Kind, name string) []Step {
	path := k.path(k.name(name))
	return []Step{
		{Name: "end-finalizers", Method: http.MethodPatch, Path: path, Type: mergePatch, Body: `{"metadata":{"finalizers":null}}`},
		{Name: "end", Method: http.MethodDelete, Path: path, Query: "gracePeriodSeconds=0"},
	}
}

func creates(k *Kind) Case {
	const name = "creates"
	post := func(step, query string, body any) Step {
		return Step{Name: step, Method: http.MethodPost, Path: k.collection(), Query: query, Body: body}
	}
	steps := []Step{
		post("dry-run", "dryRun=All", k.object(name)),
		post("minimal", "", k.object(name)),
		{Name: "get", Method: http.MethodGet, Path: k.path(k.name(name))},
		{Name: "get-pretty", Method: http.MethodGet, Path: k.path(k.name(name)), Query: "pretty=true"},
		{Name: "get-exact", Method: http.MethodGet, Path: k.path(k.name(name)), Query: "resourceVersion=0"},
		{Name: "get-bad-version", Method: http.MethodGet, Path: k.path(k.name(name)), Query: "resourceVersion=x"},
		{Name: "get-missing", Method: http.MethodGet, Path: k.path("missing")},
		post("again", "", k.object(name)),
		post("again-dry", "dryRun=All", k.object(name)),
		post("manager", "dryRun=All&fieldManager=m", k.object("manager")),
		post("manager-long", "dryRun=All&fieldManager="+strings.Repeat("m", 200), k.object("manager")),
		post("manager-odd", "dryRun=All&fieldManager=%00", k.object("manager")),
		post("dry-run-odd", "dryRun=Some", k.object("dry")),
		post("dry-run-twice", "dryRun=All&dryRun=All", k.object("dry")),
		post("strict", "dryRun=All&fieldValidation=Strict", with(k.object("dry"), func(o object) { o["unknown"] = 1 })),
		post("warn", "dryRun=All&fieldValidation=Warn", with(k.object("dry"), func(o object) { o["unknown"] = 1 })),
		post("ignore", "dryRun=All&fieldValidation=Ignore", with(k.object("dry"), func(o object) { o["unknown"] = 1 })),
		post("validation-odd", "dryRun=All&fieldValidation=Maybe", k.object("dry")),
	}
	steps = append(steps, end(k, name)...)
	if k.full != nil {
		full := named(k.full, k.name("full"))
		steps = append(steps, post("full-dry-run", "dryRun=All", full), post("full", "", full),
			Step{Name: "full-again", Method: http.MethodPut, Path: k.path(k.name("full")), Body: again("full", same)},
			Step{Name: "full-manifest", Method: http.MethodPut, Path: k.path(k.name("full")), Body: labelled(full, "l", "m")})
		steps = append(steps, end(k, "full")...)
	}
	return k.named(name, steps)
}

// bodies tests invalid bodies and bodies of another kind or media type.
func bodies(k *Kind) Case {
	post := func(step string, body any) Step {
		return Step{Name: step, Method: http.MethodPost, Path: k.collection(), Query: "dryRun=All", Body: body}
	}
	typed := func(step, mediaType string, body any) Step {
		s := post(step, body)
		s.Type = mediaType
		return s
	}
	o := k.object("bodies")
	text := encoded(o)
	return k.named("bodies", []Step{
		post("empty", ""), post("open", "{"), post("list", "[]"), post("null", "null"), post("text", `"a"`), post("empty-object", "{}"),
		post("trailing", text+"x"), post("two", text+text),
		post("no-kind", with(o, func(o object) { delete(o, "kind") })),
		post("no-version", with(o, func(o object) { delete(o, "apiVersion") })),
		post("other-kind", with(o, func(o object) { o["kind"] = "Other" })),
		post("other-version", with(o, func(o object) { o["apiVersion"] = "other.example.com/v1" })),
		post("list-kind", with(o, func(o object) { o["kind"] = k.Kind.Kind + "List" })),
		post("kind-number", with(o, func(o object) { o["kind"] = 5 })),
		post("metadata-text", with(o, func(o object) { o["metadata"] = "x" })),
		post("metadata-null", with(o, func(o object) { o["metadata"] = nil })),
		post("spec-list", with(o, func(o object) { o["spec"] = []any{} })),
		post("duplicate", strings.Replace(text, "{", `{"kind":"Other",`, 1)),
		post("case", strings.Replace(text, `"metadata"`, `"Metadata"`, 1)),
		post("utf8", strings.Replace(text, "bodies", "bod\xffies", 1)),
		typed("yaml", yamlType, text), typed("yaml-open", yamlType, "a: [b"), typed("yaml-tab", yamlType, "a:\tb\n\t- c"),
		typed("plain", "text/plain", text), typed("charset", jsonType+"; charset=utf-8", text), typed("odd-type", "a b/c;;", text),
		typed("protobuf-without-prefix", protobufType(), text), typed("patch-type", mergePatch, text),
	})
}

// metadata tests the object metadata.
func metadata(k *Kind) Case {
	post := func(step string, change func(meta object)) Step {
		return Step{Name: step, Method: http.MethodPost, Path: k.collection(), Query: "dryRun=All",
			Body: with(k.object("metadata"), func(o object) { change(child(o, "metadata")) })}
	}
	set := func(step, field string, value any) Step { return post(step, func(m object) { m[field] = value }) }
	owner := object{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
	owned := func(change func(object)) []any { return []any{with(owner, change)} }
	return k.named("metadata", []Step{
		post("no-name", func(m object) { delete(m, "name") }),
		post("generated", func(m object) { delete(m, "name"); m["generateName"] = "gen-" }),
		post("generated-odd", func(m object) { delete(m, "name"); m["generateName"] = "Gen_" }),
		set("name-upper", "name", "Upper"), set("name-dots", "name", "a.b"), set("name-slash", "name", "a/b"), set("name-percent", "name", "a%b"),
		set("name-long", "name", strings.Repeat("a", 254)), set("name-64", "name", strings.Repeat("a", 64)), set("name-dash", "name", "-a"),
		set("namespace-other", "namespace", "other"), set("uid", "uid", "u"), set("version", "resourceVersion", "5"),
		set("self-link", "selfLink", "/x"), set("created", "creationTimestamp", moment), set("deleted", "deletionTimestamp", moment),
		set("grace", "deletionGracePeriodSeconds", 5), set("generation", "generation", 7), set("generation-negative", "generation", -1),
		set("labels-odd", "labels", object{"Not/Valid !": "x", "ok": "not valid !"}), set("labels-text", "labels", "x"),
		set("labels-number", "labels", object{"a": 1}), set("labels-null", "labels", object{"a": nil}),
		set("annotations", "annotations", object{"a": "", "example.com/A_b": "x y"}), set("annotations-odd", "annotations", object{"a b": "x", "/": "y"}),
		set("annotations-large", "annotations", object{"a": strings.Repeat("x", 256<<10)}),
		set("finalizers", "finalizers", []any{"example.com/a"}), set("finalizers-odd", "finalizers", []any{"a", "Not/Valid !", ""}),
		set("finalizers-both", "finalizers", []any{"orphan", "foregroundDeletion"}),
		set("owner", "ownerReferences", owned(same)),
		set("owner-controllers", "ownerReferences", append(owned(func(o object) { o["controller"] = true }), owned(func(o object) { o["controller"] = true; o["uid"] = "v" })...)),
		set("owner-empty", "ownerReferences", []any{object{}}),
		set("owner-event", "ownerReferences", owned(func(o object) { o["kind"] = "Event" })),
		set("owner-blocking", "ownerReferences", owned(func(o object) { o["blockOwnerDeletion"] = true })),
		set("managed-odd", "managedFields", []any{object{"manager": "m", "operation": "Other"}}),
		set("managed-type", "managedFields", []any{object{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "V0"}}),
		set("managed-fields", "managedFields", []any{object{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": object{"x": 1}}}),
		set("managed-given", "managedFields", []any{object{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": moment,
			"fieldsV1": object{"f:metadata": object{"f:labels": object{}}}}}),
	})
}

func replaces(k *Kind) Case {
	const name = "replaces"
	put := func(step, query string, body any) Step {
		return Step{Name: step, Method: http.MethodPut, Path: k.path(k.name(name)), Query: query, Body: body, Needs: "begin"}
	}
	meta := func(field string, value any) func(Seen) any {
		return again("begin", func(o object) { child(o, "metadata")[field] = value })
	}
	steps := []Step{
		begin(k, name),
		put("same-dry", "dryRun=All", again("begin", same)),
		put("same", "", again("begin", same)),
		put("manifest", "", k.object(name)),
		put("manifest-label-dry", "dryRun=All", labelled(k.object(name), "l", "m")),
		put("manifest-label", "", labelled(k.object(name), "l", "m")),
		put("stale", "", again("begin", label("stale", "yes"))),
		put("changed", "fieldManager=other", again("manifest-label", label("l", "n"))),
		put("version-text", "dryRun=All", meta("resourceVersion", "x")), put("version-number", "dryRun=All", meta("resourceVersion", 5)),
		put("other-uid", "dryRun=All", meta("uid", "other")), put("other-name", "dryRun=All", meta("name", "other")), put("no-name", "dryRun=All", meta("name", nil)),
		put("other-namespace", "dryRun=All", meta("namespace", "other")), put("namespace-gone", "dryRun=All", again("changed", func(o object) { delete(child(o, "metadata"), "namespace") })),
		put("created", "dryRun=All", again("changed", func(o object) { child(o, "metadata")["creationTimestamp"] = moment })),
		put("generation", "dryRun=All", again("changed", func(o object) { child(o, "metadata")["generation"] = 50 })),
		put("deletion", "dryRun=All", again("changed", func(o object) { child(o, "metadata")["deletionTimestamp"] = moment })),
		put("no-managed", "dryRun=All", again("changed", func(o object) { delete(child(o, "metadata"), "managedFields") })),
		put("reset-managed", "dryRun=All", again("changed", func(o object) { child(o, "metadata")["managedFields"] = []any{object{}} })),
		put("empty-managed", "dryRun=All", again("changed", func(o object) { child(o, "metadata")["managedFields"] = []any{} })),
		put("empty", "", ""), put("null", "", "null"), put("text", "", `"x"`), put("dry-odd", "dryRun=x", again("changed", same)),
		{Name: "missing", Method: http.MethodPut, Path: k.path("missing"), Query: "dryRun=All", Body: named(k.minimal, "missing")},
		{Name: "missing-uid", Method: http.MethodPut, Path: k.path("missing"), Query: "dryRun=All",
			Body: with(named(k.minimal, "missing"), func(o object) { child(o, "metadata")["uid"] = "u" })},
		{Name: "collection", Method: http.MethodPut, Path: k.collection(), Body: k.object(name)},
		{Name: "post-object", Method: http.MethodPost, Path: k.path(k.name(name)), Body: k.object(name)},
	}
	if k.full != nil {
		steps = append(steps, put("full", "dryRun=All", named(k.full, k.name(name))))
	}
	return k.named(name, append(steps, end(k, name)...))
}
