package catalogue

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Surface holds the types of a release or of a CustomResourceDefinition, and by definition
// name the schemas that these types and their bodies refer to. All names are in the
// vocabulary in use.
type Surface struct {
	Types       []*Type
	Definitions map[string]*spec.Schema
}

// Extensions of the published documents: the kind of a schema or an operation, and the
// action of an operation. They keep their original names in memory, because the libraries
// only know those.
var (
	extensionKinds  = vocabulary.K8s().Extension + "group-version-kind"
	extensionAction = vocabulary.K8s().Extension + "action"
)

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
