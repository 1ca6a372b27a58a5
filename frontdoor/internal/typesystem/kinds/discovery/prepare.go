package discovery

import (
	"reflect"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"k8s.io/apimachinery/pkg/util/validation"
)

// dropTopology makes the deprecated topology of endpoints read-only in v1: what the
// client says of it is ignored, and what an older version said stays with endpoints
// that nobody changed (section "Removals"). Of those that are changed the node stays,
// which only stood there.
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
