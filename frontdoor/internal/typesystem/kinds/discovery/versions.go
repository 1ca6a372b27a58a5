package discovery

import (
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Labels in the topology of v1beta1 that have fields in v1.
func zoneLabel(v vocabulary.Vocabulary) string { return v.Qualified("topology", "zone") }
func hostLabel(v vocabulary.Vocabulary) string { return v.Qualified("", "hostname") }

// endpointSliceFromV1beta1 moves the zone from the topology to its field, and removes the
// hostname if it equals nodeName. The rest becomes deprecatedTopology.
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

// endpointSliceToV1beta1 builds the topology from zone, nodeName and deprecatedTopology,
// whose hostname wins over nodeName.
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
