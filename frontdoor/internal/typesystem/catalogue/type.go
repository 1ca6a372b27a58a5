// Package catalogue knows every resource type as data: what a path addresses,
// which verbs and subresources it has, how its objects look and where they are
// kept. Built-in types come from the published 1.21 document, completed by the
// files of package kinds. Everybody else asks it and nobody else lists
// types. It does no I/O per request. It serves "Resources and their fields",
// "Path shapes" and "Groups and paths" of the specification.
package catalogue

import (
	"context"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/resource"
)

// Type is a resource type in one group version: what a path addresses. Types are
// immutable once the catalogue has been built.
type Type struct {
	Group      string // empty for the core group
	Version    string
	Resource   string // plural, as in paths
	Singular   string
	Kind       string
	ListKind   string // empty when it cannot be listed
	ShortNames []string
	Categories []string
	Namespaced bool
	// Verbs of the resource itself, as discovery names them.
	Verbs []string
	// Subresources by name, as in status and scale.
	Subresources map[string]*Subresource
	// Custom types come from definitions that are objects themselves: DefinitionUID is
	// the UID of that object.
	Custom        bool
	DefinitionUID string
	// Virtual types represent an operation: they are created and never stored.
	Virtual bool

	// Stored is the group version that is kept; the type itself when it is the one,
	// and for virtual types.
	Stored *Type
	// Key is where objects are kept: the same for all versions of a type, and for
	// groups that share objects (events, ingresses).
	Key resource.GroupResource

	// Schema describes the object. Its extensions have their original names
	// (x-kubernetes-...), because the libraries read only those.
	Schema *spec.Schema
	// Definition is the schema's name in the document, in the vocabulary in use.
	Definition string

	// Selectable maps the names of field selectors, beyond metadata.name and
	// metadata.namespace, to where their values stand.
	Selectable []SelectableField
	// Columns of the Table; empty for the default two.
	Columns []kinds.Column
	// NameRule says which names are valid.
	NameRule kinds.NameRule
	// Behavior is what writes of the objects do differently.
	Behavior kinds.Behavior
	// Deprecation is set for versions that are on their way out.
	Deprecation *kinds.Deprecation
	// Going is true while the definition of a custom type is being deleted: its objects
	// may be changed, so that they can go, but there are no new ones.
	Going bool
	// Siblings are all versions of a custom type, served or not, by their names, and
	// Since is the first revision at which objects are certainly stored as these
	// versions want them: fields were dropped and defaults set.
	Siblings map[string]*Type
	Since    int64
	// KeepsAll says that objects of a custom type are kept as they are sent, with fields
	// that the type does not have and with null.
	KeepsAll bool
	// Webhook tells what an object of another version is in this one; nil where the
	// versions differ in nothing but their names, or package convert knows.
	Webhook Converter
}

// Converter asks somebody else what objects are in another version.
type Converter interface {
	// Convert returns the objects in that version, in the same order. It does not
	// modify them.
	Convert(ctx context.Context, objects []map[string]any, apiVersion string) ([]map[string]any, error)
}

// Subresource is a sub path below one object.
type Subresource struct {
	Name  string
	Group string // of the body; empty version means: of the type itself
	// Version and Kind of the body, for example autoscaling/v1 Scale.
	Version string
	Kind    string
	Verbs   []string
	// Connect subresources hand a connection on (exec, proxy); their body is not
	// an object and their Kind names the query parameters.
	Connect bool
	// Scale says where the numbers of a scale stand; nil for the usual places.
	Scale *ScalePaths
}

// ScalePaths are where a custom type keeps what its scale shows.
type ScalePaths struct {
	Replicas       []string // wanted
	StatusReplicas []string // there are
	Selector       []string // a label selector as text; nil when there is none
}

// SelectableField is a field that field selectors may name.
type SelectableField struct {
	Name    string   // as in spec.nodeName
	Path    []string // where the value stands in the stored version
	Default string   // what an absent value counts as
}

// GroupResource names the type independently of its version.
func (t *Type) GroupResource() resource.GroupResource {
	return resource.GroupResource{Group: t.Group, Resource: t.Resource, Custom: t.Custom}
}

// Can reports whether the type has a verb.
func (t *Type) Can(verb string) bool {
	return slices.Contains(t.Verbs, verb) || t.Going && (verb == "update" || verb == "patch")
}

// DeprecationWarning is what clients of a deprecated version are told; empty for
// others (section "Other signals").
func (t *Type) DeprecationWarning() string {
	d := t.Deprecation
	if d == nil {
		return ""
	}
	if d.Warning != "" {
		return d.Warning
	}
	text := t.APIVersion() + " " + t.Kind + " is deprecated in v" + d.Since + "+"
	if d.Removed != "" {
		text += ", unavailable in v" + d.Removed + "+"
	}
	if d.Replacement != "" {
		text += "; use " + d.Replacement
	}
	return text
}

// APIVersion returns the type's group version as objects name it.
func (t *Type) APIVersion() string {
	if t.Group == "" {
		return t.Version
	}
	return t.Group + "/" + t.Version
}
