package discovery

import (
	"reflect"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"k8s.io/apimachinery/pkg/util/validation"
)

// dropTopology makes deprecatedTopology read-only in v1 (section "Removals"). If the
// endpoints are unchanged, the stored topology is kept. Otherwise it is dropped from all
// endpoints, and the hostname in it becomes nodeName if that is absent and an old endpoint
// had the same hostname.
func dropTopology(w kinds.Write, obj, old map[string]any) {
	if w.Version != "v1" || reflect.DeepEqual(obj["endpoints"], old["endpoints"]) {
		return
	}
	host, known := w.Vocabulary.Qualified("", "hostname"), map[string]bool{}
	for _, e := range rules.List(old, "endpoints") {
		known[rules.Text(rules.AsObject(rules.AsObject(e)["deprecatedTopology"]), host)] = true
	}
	for _, e := range rules.List(obj, "endpoints") {
		endpoint := rules.AsObject(e)
		node := rules.Text(rules.AsObject(endpoint["deprecatedTopology"]), host)
		if endpoint["nodeName"] == nil && known[node] && len(validation.IsDNS1123Subdomain(node)) == 0 {
			endpoint["nodeName"] = node
		}
		delete(endpoint, "deprecatedTopology")
	}
}
