// Package catalogue holds every resource type as data: its names, verbs and subresources,
// schema, columns and storage key. Built-in types come from the OpenAPI document of a release,
// completed by the files of package kinds. It is the only list of types; all other packages
// look types up here. It does no I/O per request. It serves "Resources and their fields",
// "Path shapes" and "Groups and paths" of the specification.
package catalogue

import (
	"context"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Type is a resource type in one group version. Types are immutable once the catalogue has
// been built.
type Type struct {
	Group      string // empty for the core group
	Version    string
	Resource   string // plural, as in paths
	Singular   string
	Kind       string
	ListKind   string // empty if it cannot be listed
	ShortNames []string
	Categories []string
	Namespaced bool
	// Verbs of the resource itself, as discovery names them.
	Verbs []string
	// Subresources by name, for example status and scale.
	Subresources map[string]*Subresource
	// Custom types are defined by CustomResourceDefinitions: DefinitionUID is the UID of
	// that object.
	Custom        bool
	DefinitionUID string
	// Origin is a hash of all that the definition of a custom type says about this version. It
	// is the same in every front door.
	Origin [32]byte
	// Virtual types represent an operation: they are created and never stored.
	Virtual bool

	// Stored is the type in the storage version; the type itself if it is that, and for
	// virtual types.
	Stored *Type
	// Key is the group and resource under which objects are stored: the same for all
	// versions of a type, and for groups that share objects (events, ingresses).
	Key resource.GroupResource

	// Definition is the name of the schema, in the vocabulary in use. Describe sets both.
	Definition string
	schema     *Definition

	// Selectable lists the field selectors beyond metadata.name and metadata.namespace.
	Selectable []SelectableField
	// Columns of the Table; empty for the two default columns. TableColumns returns them with
	// all descriptions.
	Columns   []kinds.Column
	described func() []kinds.Column
	// NameRule is the rule for valid names.
	NameRule kinds.NameRule
	// Behavior holds the deviations of writes from the default.
	Behavior kinds.Behavior
	// Deprecation is set for deprecated versions.
	Deprecation *kinds.Deprecation
	// Going is true while the definition of a custom type is being deleted: its objects can
	// be updated, so that finalizers can be removed, but not created.
	Going bool
	// Siblings are all versions of a custom type by name, served or not. Since is the first
	// revision at which objects are known to be stored as these versions' schemas require,
	// pruned and defaulted.
	Siblings map[string]*Type
	Since    int64
	// KeepsAll is set for custom types whose objects are stored as sent, including unknown
	// fields and nulls.
	KeepsAll bool
	// Webhook converts objects of other versions to this one; nil if the versions differ
	// only in their names, or if package versions converts them.
	Webhook Converter
	// Rules are the validation rules of a custom type; nil for none.
	Rules Rules
}

// Rules validates objects beyond their schema.
type Rules interface {
	// Validate returns the causes for which an object is invalid, and warnings about it. old
	// is the stored object, nil for a create; found are the causes of the schema. The error
	// is Timeout (504) if ctx is over first.
	Validate(ctx context.Context, object, old map[string]any, found []services.StatusCause) (causes []services.StatusCause, warnings []string, err error)
}

// Converter converts objects by calling another service.
type Converter interface {
	// Convert returns the objects in that version, in the same order. It does not modify
	// them.
	Convert(ctx context.Context, objects []map[string]any, apiVersion string) ([]map[string]any, error)
}

// Subresource is a subresource of a type.
type Subresource struct {
	Name  string
	Group string // of the body; an empty Version means the type's own group version
	// Version and Kind of the body, for example autoscaling/v1 Scale.
	Version string
	Kind    string
	Verbs   []string
	// Connect subresources pass a connection on (exec, proxy); their body is not an object,
	// and Kind is the kind of the query parameters.
	Connect bool
	// Scale has the field paths of a scale; nil for the usual ones.
	Scale *ScalePaths
}

// ScalePaths are the field paths that the scale of a custom type reads and writes.
type ScalePaths struct {
	Replicas       []string // desired replicas
	StatusReplicas []string // observed replicas
	Selector       []string // a label selector as a string; nil for none
}

// SelectableField is a field that field selectors support.
type SelectableField struct {
	Name    string   // for example spec.nodeName
	Path    []string // in the storage version
	Or      []string // the path that is read if the field is absent or empty; nil for none
	Default string   // the value of an absent field
}

// RecordedNames returns the names of selectable fields that the stored type has under another
// name; nil if there are none.
func (t *Type) RecordedNames() (names map[string]string) {
	if t.Custom || t.Stored == nil || t.Stored == t {
		return nil
	}
	for _, field := range t.Selectable {
		for _, stored := range t.Stored.Selectable {
			if field.Name != stored.Name && slices.Equal(field.Path, stored.Path) {
				if names == nil {
					names = map[string]string{}
				}
				names[field.Name] = stored.Name
			}
		}
	}
	return names
}

// Schema returns the schema of the object; nil for none. Its extensions have their original
// names (x-kubernetes-...), because the libraries only know those.
func (t *Type) Schema() *spec.Schema { return t.schema.get() }

// Describe sets the definition of a type that is being made, and its name.
func (t *Type) Describe(name string, d *Definition) { t.Definition, t.schema = name, d }

// TableColumns returns the columns of the Table with their descriptions.
func (t *Type) TableColumns() []kinds.Column {
	if t.described == nil {
		return t.Columns
	}
	return t.described()
}

// GroupResource names the type independently of its version.
func (t *Type) GroupResource() resource.GroupResource {
	return resource.GroupResource{Group: t.Group, Resource: t.Resource, Custom: t.Custom}
}

// Can reports whether the type supports a verb.
func (t *Type) Can(verb string) bool {
	return slices.Contains(t.Verbs, verb) || t.Going && (verb == "update" || verb == "patch")
}

// DeprecationWarning returns the text of the Warning header for a deprecated version; ""
// for others (section "Other signals").
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

// APIVersion returns the value of apiVersion for the type's objects.
func (t *Type) APIVersion() string {
	if t.Group == "" {
		return t.Version
	}
	return t.Group + "/" + t.Version
}

// configurable names the type as --runtime-config does.
func (t *Type) configurable() runtimeconfig.Type {
	return runtimeconfig.Type{Group: t.Group, Version: t.Version, Resource: t.Resource}
}

func configurable(types []*Type) []runtimeconfig.Type {
	named := make([]runtimeconfig.Type, len(types))
	for i, t := range types {
		named[i] = t.configurable()
	}
	return named
}
