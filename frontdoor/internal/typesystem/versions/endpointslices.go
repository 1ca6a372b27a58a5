package versions

import (
	"maps"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Labels of an old endpoint's topology that have a field of their own by now.
func zoneLabel(v vocabulary.Vocabulary) string { return v.Qualified("topology", "zone") }
func hostLabel(v vocabulary.Vocabulary) string { return v.Qualified("", "hostname") }

// endpointSliceToBest takes the zone out of each endpoint's topology, and the host
// unless it is another than the node. The rest is deprecated.
func endpointSliceToBest(v vocabulary.Vocabulary, slice map[string]any) {
	eachChanged(slice, "endpoints", func(endpoint map[string]any) {
		topology, ok := take(endpoint, "topology")
		if !ok {
			return
		}
		labels, _ := topology.(map[string]any)
		rest := maps.Clone(labels)
		if zone, ok := take(rest, zoneLabel(v)); ok {
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

// endpointSliceFromBest makes each endpoint's topology of its zone, its node, unless
// it names another host already, and what is deprecated.
func endpointSliceFromBest(v vocabulary.Vocabulary, slice map[string]any) {
	eachChanged(slice, "endpoints", func(endpoint map[string]any) {
		topology := map[string]any{}
		deprecated, _ := take(endpoint, "deprecatedTopology")
		labels, _ := deprecated.(map[string]any)
		maps.Copy(topology, labels)
		if zone, ok := take(endpoint, "zone"); ok {
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
