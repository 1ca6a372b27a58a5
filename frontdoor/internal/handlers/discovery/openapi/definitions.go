package openapi

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/reduce"
	"github.com/portico-platform/portico/services/vocabulary"
)

const definitionPointer = "#/definitions/"

// kindRef is the kind of an operation's object.
type kindRef struct{ group, version, kind string }

// reference returns a reference to the schema of a kind, and adds the schema and all
// that it refers to. The schema of a kind without one is that of a string.
func (d *document) reference(k kindRef) *spec.Schema {
	if name := d.standIns[k]; name != "" {
		return spec.RefProperty(definitionPointer + name)
	}
	name, ok := d.Catalogue.Body(k.group, k.version, k.kind)
	if !ok {
		return spec.StringProperty()
	}
	return d.named(name)
}

// meta returns a reference to a kind that all groups share.
func (d *document) meta(kind string) *spec.Schema {
	return d.reference(kindRef{"", "v1", kind})
}

// shared returns a reference to a schema of apimachinery by the end of its name. Without it
// the schema is that of any object.
func (d *document) shared(name string) *spec.Schema {
	name = d.Vocabulary.Definitions + "apimachinery.pkg." + name
	if d.Catalogue.Definitions().Get(name) == nil {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	}
	return d.named(name)
}

// named returns a reference to a schema by its definition name.
func (d *document) named(name string) *spec.Schema {
	d.add(name)
	return spec.RefProperty(definitionPointer + name)
}

func (d *document) add(name string) {
	if _, done := d.found[name]; done || d.elsewhere[name] {
		return
	}
	schema, own := d.Catalogue.Definitions().Read(name)
	if schema == nil {
		return
	}
	d.found[name] = spec.Schema{}
	s := *schema
	s.Extensions = d.ownKinds(s.Extensions)
	d.found[name] = d.publish(s, own)
}

// kindsExtension is the extension with the kinds of a schema, by its name in memory.
var kindsExtension = vocabulary.K8s().Extension + "group-version-kind"

// ownKinds returns extensions with only those of several kinds that belong to the group
// version of the document or to the core v1: every group version has its DeleteOptions.
func (d *document) ownKinds(extensions spec.Extensions) spec.Extensions {
	kinds, _ := extensions[kindsExtension].([]any)
	if len(kinds) < 2 || d.version == "" {
		return extensions
	}
	extensions = maps.Clone(extensions)
	extensions[kindsExtension] = slices.DeleteFunc(slices.Clone(kinds), func(kind any) bool {
		k, _ := kind.(map[string]any)
		own := k["group"] == d.group && k["version"] == d.version
		return !own && (k["group"] != "" || k["version"] != "v1")
	})
	return extensions
}

// publish returns a schema with the vocabulary's names of extensions, and adds what it refers to. It copies what is below
// the schema, unless that is the document's own. A custom type's restrictions of metadata are not published, as in Kubernetes.
func (d *document) publish(s spec.Schema, own bool) spec.Schema {
	s = reduce.Reference(s)
	if name, ok := strings.CutPrefix(s.Ref.String(), definitionPointer); ok {
		d.add(name)
	}
	if d.withoutDefaults {
		s.Default = nil
	}
	s.Extensions = d.extensions(s.Extensions)
	properties := s.Properties
	if properties != nil && !own {
		s.Properties = make(map[string]spec.Schema, len(properties))
	}
	for name, property := range properties {
		s.Properties[name] = d.publish(property, own)
	}
	if s.Items != nil && s.Items.Schema != nil {
		items := d.publish(*s.Items.Schema, own)
		s.Items = &spec.SchemaOrArray{Schema: &items}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		values := d.publish(*s.AdditionalProperties.Schema, own)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
	}
	s.AllOf = slices.Clone(s.AllOf)
	for i, part := range s.AllOf {
		s.AllOf[i] = d.publish(part, own)
	}
	return s
}

// extensions translates original names of extensions to the vocabulary.
func (d *document) extensions(original spec.Extensions) spec.Extensions {
	prefix := vocabulary.K8s().Extension
	if d.Vocabulary.Extension == prefix {
		return original
	}
	renamed := make(spec.Extensions, len(original))
	for name, value := range original {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			name = d.Vocabulary.Extension + rest
		}
		renamed[name] = value
	}
	return renamed
}
