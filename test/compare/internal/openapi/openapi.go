// Package openapi reads the parts of a server's /openapi/v2 document that the comparison
// needs: the fields of a kind, their types, and which of them are required. It contains no
// knowledge about single kinds.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Schema is the schema of a value.
type Schema struct {
	Ref                  string             `json:"$ref"`
	Type, Format         string             `json:",omitempty"`
	Properties           map[string]*Schema `json:",omitempty"`
	Items                *Schema            `json:",omitempty"`
	AdditionalProperties *Schema            `json:",omitempty"`
	Required             []string           `json:",omitempty"`
	Enum                 []any              `json:",omitempty"`
}

// Document contains the types of one server.
type Document struct {
	definitions map[string]*Schema
	kinds       map[Kind]string
}

// Kind is a kind in a version of a group.
type Kind struct{ Group, Version, Kind string }

// Parse reads the document of /openapi/v2.
func Parse(content []byte) (*Document, error) {
	var raw struct{ Definitions map[string]json.RawMessage }
	if err := json.Unmarshal(content, &raw); err != nil {
		return nil, err
	}
	d := &Document{definitions: map[string]*Schema{}, kinds: map[Kind]string{}}
	extension := vocabulary.K8s().Extension + "group-version-kind"
	for name, content := range raw.Definitions {
		s := &Schema{}
		if err := json.Unmarshal(content, s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d.definitions[name] = s
		var extensions map[string]json.RawMessage
		if err := json.Unmarshal(content, &extensions); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var kinds []Kind
		if value := extensions[extension]; value != nil {
			if err := json.Unmarshal(value, &kinds); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		for _, k := range kinds {
			d.kinds[k] = name
		}
	}
	return d, nil
}

// Of returns the schema of a kind, or nil.
func (d *Document) Of(k Kind) *Schema { return d.definitions[d.kinds[k]] }

// Resolve follows a reference. It returns nil for nil.
func (d *Document) Resolve(s *Schema) *Schema {
	if s != nil && s.Ref != "" {
		return d.definitions[s.Name()]
	}
	return s
}

// Name returns the name of the definition that a schema refers to, or "".
func (s *Schema) Name() string { return s.Ref[strings.LastIndex(s.Ref, "/")+1:] }

// Fields returns the sorted names of a schema's properties.
func (s *Schema) Fields() []string { return slices.Sorted(maps.Keys(s.Properties)) }

// Prune removes the properties of an object that the schema does not have, in place.
// Values without a schema stay.
func (d *Document) Prune(value any, s *Schema) {
	s = d.Resolve(s)
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			switch p := s.Properties[name]; {
			case p != nil:
				d.Prune(inner, p)
			case s.AdditionalProperties != nil:
				d.Prune(inner, s.AdditionalProperties)
			case len(s.Properties) > 0:
				delete(v, name)
			}
		}
	case []any:
		for _, inner := range v {
			d.Prune(inner, s.Items)
		}
	}
}

// PruneOwned does the same for a set of owned fields (fieldsV1).
func (d *Document) PruneOwned(fields map[string]any, s *Schema) {
	s = d.Resolve(s)
	if s == nil {
		return
	}
	for key, inner := range fields {
		next := s.Items
		if name, ok := strings.CutPrefix(key, "f:"); ok {
			next = s.Properties[name]
			if next == nil {
				next = s.AdditionalProperties
			}
			if next == nil && len(s.Properties) > 0 {
				delete(fields, key)
			}
		}
		if inner, ok := inner.(map[string]any); ok {
			d.PruneOwned(inner, next)
		}
	}
}
