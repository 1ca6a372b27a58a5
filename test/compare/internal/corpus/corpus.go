package corpus

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/portico-platform/portico/test/compare/internal/corpus/written"
	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

// Types of bodies.
const (
	jsonType      = "application/json"
	yamlType      = "application/yaml"
	jsonPatch     = "application/json-patch+json"
	mergePatch    = "application/merge-patch+json"
	strategyPatch = "application/strategic-merge-patch+json"
	applyPatch    = "application/apply-patch+yaml"
)

// New returns the cases of all kinds, ordered by kind.
func New(kinds []*Kind, portico, peer *openapi.Document) ([]Case, error) {
	manifests, err := written.Manifests()
	if err != nil {
		return nil, err
	}
	w := &walker{portico: portico, peer: peer, visits: map[string]int{}}
	var all []Case
	for _, k := range kinds {
		w.setManifests(k, manifestsOf(k.Kind, manifests))
	}
	versions := map[string]bool{}
	for i, k := range kinds {
		all = append(all, w.cases(k)...)
		if !versions[k.GroupPath()] {
			versions[k.GroupPath()] = true
			all = append(all, documents(k, i == 0))
		}
	}
	extra, err := requests(kinds)
	return append(all, extra...), err
}

// Prepare returns the request that creates the kind's namespace.
func Prepare(k *Kind) Step {
	return Step{Name: "namespace", Method: http.MethodPost, Path: "/api/v1/namespaces",
		Body: object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": k.Namespace()}}}
}

func (w *walker) cases(k *Kind) []Case {
	if !k.creatable() {
		return w.reading(k)
	}
	if !k.Stored() {
		return w.virtual(k)
	}
	all := []Case{
		creates(k), bodies(k), metadata(k), replaces(k), jsonPatches(k), mergePatches(k), applies(k), deletions(k), finalizers(k), collections(k), accepts(k), watches(k),
		strictness(k), conflicts(k),
	}
	if slices.Contains(k.Subresources, "status") {
		all = append(all, w.statuses(k))
	}
	if slices.Contains(k.Subresources, "scale") {
		all = append(all, scales(k))
	}
	return append(all, w.fieldCases(k)...)
}

// reading returns the cases of a kind that clients cannot create.
func (w *walker) reading(k *Kind) []Case {
	return []Case{{Kind: k, Name: "read", Steps: []Step{
		{Name: "list", Method: http.MethodGet, Path: k.collection()},
		{Name: "get-missing", Method: http.MethodGet, Path: k.path("missing")},
		{Name: "create", Method: http.MethodPost, Path: k.collection(), Body: k.minimal},
		{Name: "delete", Method: http.MethodDelete, Path: k.path("missing")},
	}}}
}

// virtual returns the cases of a kind whose objects are not stored, such as reviews.
func (w *walker) virtual(k *Kind) []Case {
	return append([]Case{bodies(k), {Kind: k, Name: "review", Steps: []Step{
		{Name: "create", Method: http.MethodPost, Path: k.collection(), Body: k.minimal},
		{Name: "dry-run", Method: http.MethodPost, Path: k.collection(), Query: "dryRun=All", Body: k.minimal},
		{Name: "table", Method: http.MethodPost, Path: k.collection(), Accept: tableAccept(), Body: k.minimal},
		{Name: "named", Method: http.MethodPost, Path: k.collection(), Body: named(k.minimal, "x")},
		{Name: "get", Method: http.MethodGet, Path: k.collection()},
		{Name: "put", Method: http.MethodPut, Path: k.path("x"), Body: named(k.minimal, "x")},
	}}}, w.fieldCases(k)...)
}

// encoded returns an object as JSON text.
func encoded(o object) string {
	content, _ := json.Marshal(o) // only JSON types
	return string(content)
}

// again returns a function that changes a server's response to an earlier step.
func again(step string, change func(object)) func(Seen) any {
	return func(seen Seen) any {
		if seen[step] == nil {
			return object{}
		}
		return with(seen[step], change)
	}
}

func same(object) {}

func label(key, value string) func(object) {
	return func(o object) { child(child(o, "metadata"), "labels")[key] = value }
}
