package catalogue

import (
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/vocabulary"
)

const definitionsPointer = "#/definitions/"

// documentNames maps the names of a published document, which are the original ones, to the
// chosen vocabulary. It is used once, when the catalogue is built.
type documentNames struct {
	original, chosen vocabulary.Vocabulary
	// text maps the names in descriptions.
	text *strings.Replacer
}

func newDocumentNames(original, chosen vocabulary.Vocabulary) documentNames {
	from, to := original.Signers, chosen.Signers
	return documentNames{original: original, chosen: chosen, text: strings.NewReplacer(
		original.Extension, chosen.Extension,
		from.NodeClient, to.NodeClient, from.Client, to.Client, from.NodeServing, to.NodeServing, from.LegacyUnknown, to.LegacyUnknown,
	)}
}

// group maps the name of an API group.
func (n documentNames) group(name string) string {
	return n.chosen.Group(n.original.ShortGroup(name))
}

// definition maps the name of a definition.
func (n documentNames) definition(name string) string {
	rest, ours := strings.CutPrefix(name, n.original.Definitions)
	if !ours || n.same() {
		return name
	}
	return n.chosen.Definitions + strings.TrimPrefix(rest, "kube-")
}

func (n documentNames) same() bool { return n.original.Name == n.chosen.Name }

// rename maps the names in a schema, in place and before it is parsed: references to other
// schemas, and properties whose names are extensions (those of JSONSchemaProps in
// CustomResourceDefinitions).
func (n documentNames) rename(s *openapi_v2.Schema) {
	if s == nil || n.same() {
		return
	}
	s.Description = n.text.Replace(s.Description)
	if target, ok := strings.CutPrefix(s.XRef, definitionsPointer); ok {
		s.XRef = definitionsPointer + n.definition(target)
	}
	for _, property := range s.GetProperties().GetAdditionalProperties() {
		if rest, ok := strings.CutPrefix(property.Name, n.original.Extension); ok {
			property.Name = n.chosen.Extension + rest
		}
		n.rename(property.Value)
	}
	for _, item := range s.GetItems().GetSchema() {
		n.rename(item)
	}
	for _, part := range s.AllOf {
		n.rename(part)
	}
	n.rename(s.GetAdditionalProperties().GetSchema())
}

// renameKinds maps the groups in a schema's group-version-kind extension.
func (n documentNames) renameKinds(s *spec.Schema) {
	list, _ := s.Extensions[extensionKinds].([]any)
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok {
			if group, ok := m["group"].(string); ok {
				m["group"] = n.group(group)
			}
		}
	}
}
