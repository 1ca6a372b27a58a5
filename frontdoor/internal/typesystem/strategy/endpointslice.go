package strategy

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/services/vocabulary"
)

// dropTopology makes the deprecated topology of endpoints read-only in v1: what the
// client says of it is ignored, and what an older version said stays with endpoints
// that nobody changed (section "Removals"). Of those that are changed the node stays,
// which only stood there.
func dropTopology(v vocabulary.Vocabulary, obj, old map[string]any) {
	if reflect.DeepEqual(obj["endpoints"], old["endpoints"]) {
		return
	}
	host, known := v.Qualified("", "hostname"), map[string]bool{}
	for _, e := range items(old, "endpoints") {
		known[text(element(element(e)["deprecatedTopology"])[host])] = true
	}
	for _, e := range items(obj, "endpoints") {
		endpoint := element(e)
		node := text(element(endpoint["deprecatedTopology"])[host])
		if endpoint["nodeName"] == nil && known[node] && len(validation.IsDNS1123Subdomain(node)) == 0 {
			endpoint["nodeName"] = node
		}
		delete(endpoint, "deprecatedTopology")
	}
}
