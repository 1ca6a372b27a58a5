package crd

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// specimen is a definition with everything that documents about custom types can show. X- is
// replaced by the prefix of extensions.
const specimen = `{"apiVersion": "apiextensions/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "specimens.example.com", "uid": "a"},
"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "specimens", "singular": "specimen", "kind": "Specimen", "listKind": "SpecimenList"},
"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
"selectableFields": [{"jsonPath": ".spec.text"}],
"schema": {"openAPIV3Schema": {"type": "object", "title": "A", "description": "<b>", "required": ["spec"], "externalDocs": {"url": "https://example.com", "description": "a"},
"properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}, "status": {"type": "object", "nullable": true, "properties": {"n": {"type": "integer"}}},
"spec": {"type": "object", "minProperties": 1, "maxProperties": 99, "properties": {
"text": {"type": "string", "format": "date", "pattern": "^a", "minLength": 1, "maxLength": 9, "default": "a", "example": "b", "enum": ["a", "b"]},
"n": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": 2, "default": 4},
"f": {"type": "number", "default": 1.5}, "b": {"type": "boolean", "default": true, "nullable": true},
"either": {"X-int-or-string": true, "default": 1}, "both": {"X-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
"map": {"type": "object", "additionalProperties": {"type": "string"}, "X-map-type": "granular"}, "any": {"type": "object", "additionalProperties": true},
"open": {"type": "object", "X-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}},
"object": {"type": "object", "X-embedded-resource": true, "X-preserve-unknown-fields": true},
"list": {"type": "array", "minItems": 1, "maxItems": 9, "X-list-type": "map", "X-list-map-keys": ["k"],
"items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
"set": {"type": "array", "uniqueItems": false, "X-list-type": "set", "items": {"type": "string"}},
"one": {"type": "string", "allOf": [{"maxLength": 9}], "anyOf": [{"minLength": 1}], "oneOf": [{"pattern": "a"}], "not": {"enum": ["c"]}},
"rule": {"type": "string", "X-validations": [{"rule": "self != 'a'", "message": "a"}]}}}}}}}]},
"status": {"acceptedNames": {"plural": "specimens", "singular": "specimen", "kind": "Specimen", "listKind": "SpecimenList"}, "conditions": [{"type": "Established", "status": "True"}]}}`

// Specimen returns the types of a definition with everything that documents about custom types can show: documents of
// two programs are the same for all custom types if they are for these.
func Specimen(v vocabulary.Vocabulary, types *catalogue.Catalogue) (catalogue.Surface, error) {
	object, err := tree.Decode([]byte(strings.ReplaceAll(specimen, `"X-`, `"`+v.Extension)))
	if err != nil {
		return catalogue.Surface{}, err
	}
	d, err := Compile(object, Setting{Vocabulary: v, Types: types})
	return d.Surface, err
}
