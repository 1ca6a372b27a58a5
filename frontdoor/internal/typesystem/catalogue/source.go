package catalogue

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Source describes resource types: the published document of a release, later
// others. What it returns is in the given vocabulary already.
type Source interface {
	Surface(vocabulary.Vocabulary) (*Surface, error)
}

// Surface is what a source knows: types as the document has them, and the schemas
// that they and their bodies refer to, by definition name.
type Surface struct {
	Types       []*Type
	Definitions map[string]*spec.Schema
}

// Extensions of the published documents that tell which kind a schema or an
// operation is about, and what an operation does. Here they have their original
// names, because the libraries read only those.
var (
	extensionKinds  = vocabulary.K8s().Extension + "group-version-kind"
	extensionAction = vocabulary.K8s().Extension + "action"
)

// kindID names a kind in a group version.
type kindID struct{ Group, Version, Kind string }

// kindsOf returns the kinds that a definition says it describes.
func kindsOf(s *spec.Schema) []kindID {
	list, _ := s.Extensions[extensionKinds].([]any)
	kinds := make([]kindID, 0, len(list))
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok {
			group, _ := m["group"].(string)
			version, _ := m["version"].(string)
			kind, _ := m["kind"].(string)
			kinds = append(kinds, kindID{group, version, kind})
		}
	}
	return kinds
}
