package discovery

import (
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Labels of an old endpoint's topology that have a field of their own by now.
func zoneLabel(v vocabulary.Vocabulary) string { return v.Qualified("topology", "zone") }
func hostLabel(v vocabulary.Vocabulary) string { return v.Qualified("", "hostname") }

// endpointSliceFromV1beta1 takes the zone out of each endpoint's topology, and the host
// unless it is another than the node. The rest is deprecated.
func endpointSliceFromV1beta1(v vocabulary.Vocabulary, slice map[string]any) {
	edit.Items(slice, "endpoints", func(endpoint map[string]any) {
		topology, ok := edit.Take(endpoint, "topology")
		if !ok {
			return
		}
		labels, _ := topology.(map[string]any)
		rest := maps.Clone(labels)
		if zone, ok := edit.Take(rest, zoneLabel(v)); ok {
			endpoint["zone"] = zone
		}
		if host, ok := rest[hostLabel(v)]; ok && host == endpoint["nodeName"] {
			delete(rest, hostLabel(v))
		}
		if len(rest) > 0 {
			endpoint["deprecatedTopology"] = rest
		}
	})
}

// endpointSliceToV1beta1 makes each endpoint's topology of its zone, its node, unless
// it names another host already, and what is deprecated.
func endpointSliceToV1beta1(v vocabulary.Vocabulary, slice map[string]any) {
	edit.Items(slice, "endpoints", func(endpoint map[string]any) {
		topology := map[string]any{}
		deprecated, _ := edit.Take(endpoint, "deprecatedTopology")
		labels, _ := deprecated.(map[string]any)
		maps.Copy(topology, labels)
		if zone, ok := edit.Take(endpoint, "zone"); ok {
			topology[zoneLabel(v)] = zone
		}
		if node, ok := endpoint["nodeName"]; ok && topology[hostLabel(v)] == nil {
			topology[hostLabel(v)] = node
		}
		if len(topology) > 0 {
			endpoint["topology"] = topology
		}
	})
}
