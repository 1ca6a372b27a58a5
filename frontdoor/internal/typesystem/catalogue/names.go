package catalogue

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/vocabulary"
)

const definitionsPointer = "#/definitions/"

// originalNames maps the names of the packed types, which are the original ones, to the
// chosen vocabulary.
type originalNames struct {
	original, chosen vocabulary.Vocabulary
	// text maps the names in descriptions.
	text *strings.Replacer
}

func newOriginalNames(chosen vocabulary.Vocabulary) *originalNames {
	original := vocabulary.K8s()
	from, to := original.Signers, chosen.Signers
	return &originalNames{original: original, chosen: chosen, text: strings.NewReplacer(
		original.Extension, chosen.Extension,
		from.NodeClient, to.NodeClient, from.Client, to.Client, from.NodeServing, to.NodeServing, from.LegacyUnknown, to.LegacyUnknown,
	)}
}

// group maps the name of an API group.
func (n *originalNames) group(name string) string {
	return n.chosen.Group(n.original.ShortGroup(name))
}

// definition maps the name of a definition.
func (n *originalNames) definition(name string) string {
	rest, ours := strings.CutPrefix(name, n.original.Definitions)
	if !ours || n.same() {
		return name
	}
	return n.chosen.Definitions + strings.TrimPrefix(rest, "kube-")
}

func (n *originalNames) same() bool { return n.original.Name == n.chosen.Name }

// rename maps the names in a schema, in place: references to other schemas, and properties
// whose names are extensions (those of JSONSchemaProps in CustomResourceDefinitions).
func (n *originalNames) rename(s *spec.Schema) {
	if s == nil || n.same() {
		return
	}
	s.Description = n.text.Replace(s.Description)
	if target, ok := strings.CutPrefix(s.Ref.String(), definitionsPointer); ok {
		s.Ref = spec.MustCreateRef(definitionsPointer + n.definition(target))
	}
	for name, property := range s.Properties {
		n.rename(&property)
		if rest, ok := strings.CutPrefix(name, n.original.Extension); ok {
			delete(s.Properties, name)
			name = n.chosen.Extension + rest
		}
		s.Properties[name] = property
	}
	if s.Items != nil {
		n.rename(s.Items.Schema)
	}
	for i := range s.AllOf {
		n.rename(&s.AllOf[i])
	}
	if s.AdditionalProperties != nil {
		n.rename(s.AdditionalProperties.Schema)
	}
}

// renameKinds maps the groups in a schema's group-version-kind extension.
func (n *originalNames) renameKinds(s *spec.Schema) {
	list, _ := s.Extensions[extensionKinds].([]any)
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok {
			if group, ok := m["group"].(string); ok {
				m["group"] = n.group(group)
			}
		}
	}
}
