package catalogue

import "github.com/portico-platform/portico/services/vocabulary"

// Surface holds the types of a CustomResourceDefinition, and by definition name the schemas
// that these types and their bodies refer to. All names are in the vocabulary in use.
type Surface struct {
	Types       []*Type
	Definitions Definitions
}

// extensionKinds is the extension with the kinds of a schema. It keeps its original name in
// memory, because the libraries only know that.
var extensionKinds = vocabulary.K8s().Extension + "group-version-kind"

// kindID names a kind in a group version.
type kindID struct{ Group, Version, Kind string }
