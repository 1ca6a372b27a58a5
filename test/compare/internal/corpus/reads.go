package corpus

import (
	"net/http"

	"github.com/portico-platform/portico/services/vocabulary"
)

func protobufType() string { return vocabulary.K8s().Protobuf }

func as(kind, version string) string {
	return jsonType + ";as=" + kind + ";g=" + vocabulary.K8s().Group("meta.") + ";v=" + version
}

func tableAccept() string { return as("Table", "v1") }

// accepts tests the representations of responses.
func accepts(k *Kind) Case {
	const name = "accepts"
	path := k.path(k.name(name))
	const mine = "labelSelector=compare%3Daccepts"
	begin := Step{Name: "begin", Method: http.MethodPost, Path: k.collection(), Body: labelled(k.object(name), "compare", name)}
	steps := []Step{begin}
	for _, form := range []struct{ name, accept string }{
		{"json", jsonType}, {"any", "*/*"}, {"any-of-type", "application/*"}, {"yaml", yamlType}, {"protobuf", protobufType()}, {"html", "text/html"},
		{"html-or-any", "text/html, */*;q=0.1"}, {"odd", ";;"}, {"pretty", jsonType + ";pretty=1"}, {"stream", jsonType + ";stream=watch"},
		{"table", tableAccept()}, {"table-beta", as("Table", "v1beta1")}, {"table-alpha", as("Table", "v1alpha1")}, {"table-other-group", jsonType + ";as=Table;g=other;v=v1"},
		{"table-or-json", tableAccept() + "," + jsonType}, {"partial", as("PartialObjectMetadata", "v1")}, {"partial-beta", as("PartialObjectMetadata", "v1beta1")},
		{"partial-list", as("PartialObjectMetadataList", "v1")}, {"other-kind", as("Other", "v1")}, {"quality", "text/html;q=1, " + jsonType + ";q=0.5"},
	} {
		steps = append(steps,
			Step{Name: "get-" + form.name, Method: http.MethodGet, Path: path, Accept: form.accept},
			Step{Name: "list-" + form.name, Method: http.MethodGet, Path: k.collection(), Query: mine, Accept: form.accept},
			Step{Name: "put-" + form.name, Method: http.MethodPut, Path: path, Query: "dryRun=All", Accept: form.accept, Body: again("begin", same), Needs: "begin"})
	}
	table := tableAccept()
	for _, what := range []string{"None", "Object", "Metadata", "Other"} {
		steps = append(steps, Step{Name: "table-with-" + what, Method: http.MethodGet, Path: path, Query: "includeObject=" + what, Accept: table})
	}
	steps = append(steps,
		Step{Name: "create-table", Method: http.MethodPost, Path: k.collection(), Query: "dryRun=All", Accept: table, Body: k.object("table")},
		Step{Name: "patch-table", Method: http.MethodPatch, Path: path, Query: "dryRun=All", Accept: table, Type: mergePatch, Body: `{}`},
		Step{Name: "error-table", Method: http.MethodGet, Path: k.path("missing"), Accept: table},
		Step{Name: "error-yaml", Method: http.MethodGet, Path: k.path("missing"), Accept: yamlType},
		Step{Name: "error-protobuf", Method: http.MethodGet, Path: k.path("missing"), Accept: protobufType()},
		Step{Name: "delete-table", Method: http.MethodDelete, Path: path, Query: "dryRun=All", Accept: table},
		Step{Name: "delete-partial", Method: http.MethodDelete, Path: path, Query: "dryRun=All", Accept: as("PartialObjectMetadata", "v1")},
		Step{Name: "delete-all-table", Method: http.MethodDelete, Path: k.collection(), Query: "dryRun=All&" + mine, Accept: table},
	)
	if k.full != nil {
		full := labelled(named(k.full, k.name("table")), "compare", "tables")
		steps = append(steps, end(k, name)...)
		steps = append(steps, Step{Name: "create-full-table", Method: http.MethodPost, Path: k.collection(), Accept: table, Body: full},
			Step{Name: "full-table", Method: http.MethodGet, Path: k.collection(), Query: "labelSelector=compare%3Dtables", Accept: table})
		return k.named(name, append(steps, end(k, "table")...))
	}
	return k.named(name, append(steps, end(k, name)...))
}

// watches tests the events of watches with a timeout.
func watches(k *Kind) Case {
	const name = "watches"
	const mine = "labelSelector=compare%3Dwatches&watch=true&timeoutSeconds=1"
	const initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	watch := func(step, query, accept string) Step {
		return Step{Name: step, Method: http.MethodGet, Path: k.collection(), Query: query, Accept: accept}
	}
	steps := []Step{
		{Name: "begin", Method: http.MethodPost, Path: k.collection(), Body: labelled(k.object(name), "compare", name)},
		watch("from-any", mine, ""),
		watch("version-text", mine+"&resourceVersion=x", ""),
		watch("match", mine+"&resourceVersion=1&resourceVersionMatch=Exact", ""),
		watch("field-unknown", mine+"&fieldSelector=spec.unknown%3Da", ""),
		watch("html", mine, "text/html"), watch("partial-list", mine, as("PartialObjectMetadataList", "v1")),
		watch("initial-events", mine+initial, ""), watch("initial-events-table", mine+initial, tableAccept()), watch("initial-events-partial", mine+initial, as("PartialObjectMetadata", "v1")),
		watch("initial-events-protobuf", mine+initial, protobufType()), watch("initial-events-zero", mine+initial+"&resourceVersion=0", ""),
		watch("initial-events-text", mine+initial+"&resourceVersion=x", ""), watch("initial-events-no-bookmarks", mine+"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ""),
		watch("initial-events-no-match", mine+"&sendInitialEvents=true&allowWatchBookmarks=true", ""), watch("initial-events-exact", mine+"&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=Exact", ""),
		watch("initial-events-false", mine+"&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0", ""), watch("initial-events-none", mine+"&sendInitialEvents=false", ""),
		watch("initial-events-odd", mine+"&sendInitialEvents=x", ""), watch("initial-events-limit", mine+initial+"&limit=1", ""), watch("initial-events-continue", mine+initial+"&continue=x", ""),
		watch("continue", mine+"&continue=x", ""), watch("limit", mine+"&limit=1", ""), watch("timeout-odd", mine+"&resourceVersion=-1", ""),
		watch("legacy-odd", mine+"&resourceVersion=0&labelSelector=-", ""),
	}
	if k.nameable() {
		steps = append(steps, Step{Name: "old-path", Method: http.MethodGet, Accept: tableAccept(),
			Path: k.GroupPath() + "/watch" + k.path(name)[len(k.GroupPath()):], Query: "timeoutSeconds=1"})
	}
	return k.named(name, append(steps, end(k, name)...))
}
