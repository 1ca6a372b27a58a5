package published

import (
	_ "embed"
	"fmt"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// addedDocument holds the schemas of the types that the suite adds to those of a release or
// that published documents lack, with the original names of the release's definitions and
// short names of groups.
//
//go:embed added.yaml
var addedDocument string

// added returns the types that the suite adds to those of every release.
func added() (*surface, error) {
	var document struct {
		Types []struct {
			Group, Version, Resource, Kind string
			Status                         bool // whether it has one
		} `json:"types"`
		Definitions map[string]*spec.Schema `json:"definitions"`
	}
	if err := parseDocument(addedDocument, &document); err != nil {
		return nil, fmt.Errorf("added.yaml: %w", err)
	}
	nameGroups(document.Definitions)
	more := &surface{definitions: document.Definitions}
	for _, t := range document.Types {
		one := &Type{
			Group: original.Group(t.Group), Version: t.Version, Resource: t.Resource, Kind: t.Kind, ListKind: t.Kind + "List",
			Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		}
		if t.Status {
			one.Subresources = map[string]*Subresource{
				"status": {Name: "status", Kind: t.Kind, Verbs: []string{"get", "patch", "update"}},
			}
		}
		more.types = append(more.types, one)
	}
	return more, nil
}

// parseDocument reads a file with original names of definitions.
func parseDocument(text string, into any) error {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(asJSON, into)
}

// nameGroups replaces the short names of groups in the extensions of definitions.
func nameGroups(definitions map[string]*spec.Schema) {
	for _, schema := range definitions {
		list, _ := schema.Extensions[extensionKinds].([]any)
		for _, entry := range list {
			if m, ok := entry.(map[string]any); ok {
				if group, ok := m["group"].(string); ok {
					m["group"] = original.Group(original.ShortGroup(group))
				}
			}
		}
	}
}
