package catalogue

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Surface holds the types of a CustomResourceDefinition, and by definition name the schemas
// that these types and their bodies refer to. All names are in the vocabulary in use.
type Surface struct {
	Types       []*Type
	Definitions map[string]*spec.Schema
}

// extensionKinds is the extension with the kinds of a schema. It keeps its original name in
// memory, because the libraries only know that.
var extensionKinds = vocabulary.K8s().Extension + "group-version-kind"

// kindID names a kind in a group version.
type kindID struct{ Group, Version, Kind string }

// kindsOf returns the kinds in a definition's group-version-kind extension.
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
