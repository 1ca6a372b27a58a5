package strategy

import "reflect"

// dropTopology makes the deprecated topology of endpoints read-only in v1: what the
// client says of it is ignored, and what an older version said stays with endpoints
// that nobody changed (section "Removals").
func dropTopology(obj, old map[string]any) {
	if reflect.DeepEqual(obj["endpoints"], old["endpoints"]) {
		return
	}
	for _, e := range items(obj, "endpoints") {
		delete(element(e), "deprecatedTopology")
	}
}
