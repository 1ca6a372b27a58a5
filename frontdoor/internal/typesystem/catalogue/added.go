package catalogue

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

// addedDocument holds the schemas of the types that the suite adds to those of a release,
// with the original names of the release's definitions.
//
//go:embed added.yaml
var addedDocument string

// added returns the types that the suite adds to those of every source. Their group has
// the same name in all vocabularies.
func added(v vocabulary.Vocabulary) (*Surface, error) {
	text := strings.ReplaceAll(addedDocument, vocabulary.K8s().Definitions, v.Definitions)
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var document struct {
		Types []struct {
			Group, Version, Resource, Kind string
			Status                         bool // whether it has one
		} `json:"types"`
		Definitions map[string]*spec.Schema `json:"definitions"`
	}
	if err := yaml.UnmarshalStrict(asJSON, &document); err != nil {
		return nil, fmt.Errorf("added.yaml: %w", err)
	}
	surface := &Surface{Definitions: document.Definitions}
	for _, t := range document.Types {
		one := &Type{
			Group: t.Group, Version: t.Version, Resource: t.Resource, Kind: t.Kind, ListKind: t.Kind + "List",
			Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		}
		if t.Status {
			one.Subresources = map[string]*Subresource{
				"status": {Name: "status", Kind: t.Kind, Verbs: []string{"get", "patch", "update"}},
			}
		}
		surface.Types = append(surface.Types, one)
	}
	return surface, nil
}
