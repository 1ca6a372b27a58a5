package protobuf

import (
	"encoding/json"
	"strings"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// definitionKind is the kind whose objects contain schemas.
const definitionKind = "CustomResourceDefinition"

// publishedExtension is the prefix of schema extensions in the published Go types.
var publishedExtension = vocabulary.K8s().Extension

// published returns a definition whose schema extensions have the prefix of the published
// Go types.
func (m *Message) published(definition []byte) ([]byte, error) {
	object, err := tree.Decode(definition)
	if err != nil {
		return nil, err
	}
	renameExtensions(object, m.extension, publishedExtension)
	return json.Marshal(object)
}

// renameExtensions replaces the prefix of extensions in all schemas of a definition.
func renameExtensions(definition map[string]any, from, to string) {
	spec, _ := definition["spec"].(map[string]any)
	holders, _ := spec["versions"].([]any)
	for _, holder := range append([]any{spec}, holders...) {
		holder, _ := holder.(map[string]any)
		for _, field := range []string{"schema", "validation"} {
			schema, _ := holder[field].(map[string]any)
			renameIn(schema["openAPIV3Schema"], from, to)
		}
	}
}

// Keywords with subschemas: directly or in a list, and in maps by name.
var (
	subschemas      = []string{"items", "additionalItems", "additionalProperties", "not", "allOf", "anyOf", "oneOf"}
	namedSubschemas = []string{"properties", "patternProperties", "definitions", "dependencies"}
)

// renameIn renames in a schema, or in a list of schemas, recursively.
func renameIn(value any, from, to string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			renameIn(item, from, to)
		}
	case map[string]any:
		for name, of := range value {
			if rest, ok := strings.CutPrefix(name, from); ok {
				delete(value, name)
				value[to+rest] = of
			}
		}
		for _, name := range subschemas {
			renameIn(value[name], from, to)
		}
		for _, name := range namedSubschemas {
			named, _ := value[name].(map[string]any)
			for _, schema := range named {
				renameIn(schema, from, to)
			}
		}
	}
}
