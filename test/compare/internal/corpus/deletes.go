package corpus

import "net/http"

func deletions(k *Kind) Case {
	const name = "deletes"
	path := k.path(k.name(name))
	remove := func(step, query string, body any) Step {
		return Step{Name: step, Method: http.MethodDelete, Path: path, Query: query, Body: body}
	}
	options := func(fields object) object {
		fields["kind"], fields["apiVersion"] = "DeleteOptions", "v1"
		return fields
	}
	steps := []Step{
		begin(k, name),
		remove("dry", "dryRun=All", nil), remove("dry-body", "", options(object{"dryRun": []any{"All"}})), remove("dry-odd", "dryRun=x", nil),
		remove("policy-odd", "propagationPolicy=Other", nil), remove("policy-both", "propagationPolicy=Orphan&orphanDependents=true", nil),
		remove("grace-negative", "gracePeriodSeconds=-1&dryRun=All", nil), remove("grace-text", "gracePeriodSeconds=x", nil),
		remove("grace", "gracePeriodSeconds=5&dryRun=All", nil),
		remove("uid", "", options(object{"preconditions": object{"uid": "other"}})),
		remove("version", "", options(object{"preconditions": object{"resourceVersion": "1"}})),
		remove("body-open", "", "{"), remove("body-list", "", "[]"), remove("body-kind", "", object{"kind": "Pod", "apiVersion": "v1"}),
		remove("body-unknown", "", object{"kind": "DeleteOptions", "apiVersion": "v1", "unknown": 1, "dryRun": []any{"All"}}),
		remove("body-no-kind", "", object{"dryRun": []any{"All"}}),
		{Name: "missing", Method: http.MethodDelete, Path: k.path("missing")},
		{Name: "get", Method: http.MethodGet, Path: path},
	}
	for _, policy := range []string{"Background", "Foreground", "Orphan"} {
		steps = append(steps, remove("dry-"+policy, "dryRun=All&propagationPolicy="+policy, nil),
			remove(policy, "propagationPolicy="+policy, nil), remove(policy+"-again", "propagationPolicy="+policy, nil),
			Step{Name: policy + "-get", Method: http.MethodGet, Path: path})
		steps = append(steps, end(k, name)...)
		steps = append(steps, begin(k, name))
	}
	steps = append(steps, remove("orphan-dependents", "", options(object{"orphanDependents": true})))
	steps = append(steps, end(k, name)...)
	return k.named(name, append(steps, begin(k, name), remove("plain", "", nil), remove("plain-again", "", nil), begin(k, name), remove("body-empty", "", object{})))
}

func finalizers(k *Kind) Case {
	const name = "finalizers"
	path := k.path(k.name(name))
	merge := func(step, body string) Step {
		return Step{Name: step, Method: http.MethodPatch, Path: path, Type: mergePatch, Body: body}
	}
	held := with(k.object(name), func(o object) { child(o, "metadata")["finalizers"] = []any{"example.com/a"} })
	return k.named(name, []Step{
		{Name: "held", Method: http.MethodPost, Path: k.collection(), Body: held},
		{Name: "delete", Method: http.MethodDelete, Path: path, Query: "gracePeriodSeconds=0"},
		{Name: "delete-again", Method: http.MethodDelete, Path: path, Query: "gracePeriodSeconds=0"},
		{Name: "create", Method: http.MethodPost, Path: k.collection(), Body: held},
		merge("label", `{"metadata":{"labels":{"a":"b"}}}`),
		merge("add", `{"metadata":{"finalizers":["example.com/a","example.com/b"]}}`),
		merge("revive", `{"metadata":{"deletionTimestamp":null}}`),
		merge("release", `{"metadata":{"finalizers":null}}`),
		{Name: "get", Method: http.MethodGet, Path: path},
	})
}

// collections tests lists and the deletion of collections.
func collections(k *Kind) Case {
	const name = "collections"
	var steps []Step
	many := []string{"list-a", "list-b", "list-c"}
	if !k.nameable() {
		many = []string{name}
	}
	for _, n := range many {
		steps = append(steps, Step{Name: "begin-" + n, Method: http.MethodPost, Path: k.collection(), Body: labelled(labelled(k.object(n), "compare", "lists"), "n", n)})
	}
	const mine = "labelSelector=compare%3Dlists"
	for _, list := range []struct{ name, query string }{
		{"all", mine}, {"limit", mine + "&limit=1"}, {"limit-2", mine + "&limit=2"}, {"limit-negative", mine + "&limit=-1"}, {"limit-text", mine + "&limit=x"},
		{"continue-odd", mine + "&continue=x"}, {"any", mine + "&resourceVersion=0"}, {"any-limit", mine + "&resourceVersion=0&limit=1"},
		{"version-text", mine + "&resourceVersion=x"}, {"version-future", mine + "&resourceVersion=999999999"},
		{"match-without", mine + "&resourceVersionMatch=Exact"}, {"match-odd", mine + "&resourceVersion=1&resourceVersionMatch=Other"},
		{"match-exact-0", mine + "&resourceVersion=0&resourceVersionMatch=Exact"}, {"match-old", mine + "&resourceVersion=1&resourceVersionMatch=NotOlderThan"},
		{"select-in", "labelSelector=compare%3Dlists,n+in+(list-a,list-b)"}, {"select-not", "labelSelector=compare%3Dlists,n!%3Dlist-a"},
		{"select-exists", "labelSelector=compare,!other"}, {"select-odd", "labelSelector=a%3D%3D%3Db"}, {"select-key", "labelSelector=-a-"},
		{"field-name", mine + "&fieldSelector=metadata.name%3D" + k.name("list-a")}, {"field-not", mine + "&fieldSelector=metadata.name!%3Dlist-a"},
		{"field-namespace", mine + "&fieldSelector=metadata.namespace%3D" + k.Namespace()}, {"field-unknown", mine + "&fieldSelector=spec.unknown%3Da"},
		{"field-odd", mine + "&fieldSelector=a"}, {"field-kind", mine + "&fieldSelector=status.phase%3Dx"}, {"timeout", mine + "&timeoutSeconds=5"}, {"timeout-text", mine + "&timeoutSeconds=x"},
		{"watch-odd", mine + "&watch=x&timeoutSeconds=1"}, {"pretty", mine + "&pretty=true"}, {"initial-events", mine + "&sendInitialEvents=true"},
	} {
		steps = append(steps, Step{Name: list.name, Method: http.MethodGet, Path: k.collection(), Query: list.query})
	}
	if k.Namespaced {
		steps = append(steps, Step{Name: "everywhere", Method: http.MethodGet, Path: k.GroupPath() + "/" + k.Plural, Query: mine},
			Step{Name: "create-everywhere", Method: http.MethodPost, Path: k.GroupPath() + "/" + k.Plural, Body: k.object(name)},
			Step{Name: "create-nowhere", Method: http.MethodPost, Path: k.GroupPath() + "/namespaces/compare-missing/" + k.Plural, Body: k.object(name)})
	}
	remove := func(step, query string, body any) Step {
		return Step{Name: step, Method: http.MethodDelete, Path: k.collection(), Query: query, Body: body}
	}
	return k.named(name, append(steps,
		remove("delete-dry", mine+"&dryRun=All", nil), remove("delete-odd", mine+"&dryRun=x", nil), remove("delete-selector-odd", "labelSelector=a%3D%3D%3Db", nil),
		remove("delete-body-odd", mine, "{"), remove("delete-one", mine+"&gracePeriodSeconds=0&fieldSelector=metadata.name%3D"+k.name("list-a"), nil),
		remove("delete-rest", mine+"&gracePeriodSeconds=0", nil), Step{Name: "after", Method: http.MethodGet, Path: k.collection(), Query: mine}))
}
