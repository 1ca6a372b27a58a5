// Package published makes the files from which package catalogue reads the types of releases:
// from their OpenAPI documents, and from added.yaml and alpha.yaml for what these lack. It is
// not part of the programs, which need neither a document's paths nor its Protobuf.
package published

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// original has the names of the documents.
var original = vocabulary.K8s()

// Extensions of the documents: the kind of a schema or an operation, and the action of an
// operation.
var (
	extensionKinds  = original.Extension + "group-version-kind"
	extensionAction = original.Extension + "action"
)

// Type is a resource type. Its fields are those of a type of package catalogue.
type Type struct {
	Group, Version, Resource, Kind string
	ListKind                       string                  `json:",omitempty"`
	Namespaced                     bool                    `json:",omitempty"`
	Verbs                          []string                `json:",omitempty"`
	Subresources                   map[string]*Subresource `json:",omitempty"`
}

// Subresource is a subresource of a type. Its fields are those of one of package catalogue.
type Subresource struct {
	Name    string
	Group   string `json:",omitempty"`
	Version string `json:",omitempty"`
	Kind    string
	Verbs   []string
	Connect bool `json:",omitempty"`
}

// surface holds the types of a release, and the schemas that these and their bodies refer to.
type surface struct {
	types       []*Type
	definitions map[string]*spec.Schema
}

// Pack returns the types of a release, in lines: the types as JSON, the kinds of each
// definition as JSON, and then each definition with its schema. All names are the original
// ones. The order is that of names.
func Pack(r release.Release) ([]byte, error) {
	s, err := read(r)
	if err != nil {
		return nil, err
	}
	kinds := map[string]any{}
	for name, schema := range s.definitions {
		if list := schema.Extensions[extensionKinds]; list != nil {
			kinds[name] = list
		}
	}
	var packed bytes.Buffer
	encoder := json.NewEncoder(&packed)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s.types); err != nil {
		return nil, err
	}
	if err := encoder.Encode(kinds); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.definitions)) {
		packed.WriteString(name + " ")
		if err := encoder.Encode(s.definitions[name]); err != nil {
			return nil, err
		}
	}
	return packed.Bytes(), nil
}

// read returns the types of a release, those that the suite adds among them.
func read(r release.Release) (*surface, error) {
	document, err := documentOf(r)
	if err != nil {
		return nil, err
	}
	s := &surface{}
	if s.definitions, err = definitions(document); err != nil {
		return nil, err
	}
	if s.types, err = types(document); err != nil {
		return nil, err
	}
	if err := s.addAlpha(r); err != nil {
		return nil, err
	}
	more, err := added()
	if err != nil {
		return nil, err
	}
	s.types = append(s.types, more.types...)
	maps.Copy(s.definitions, more.definitions)
	s.definitions = withKeyDefaults(s.definitions)
	return s, nil
}
