package discovery

import (
	"net/url"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/reduce"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Media types of the OpenAPI documents in Protobuf. Clients still request them under
// their original names, whose @ is not valid in a media type.
const (
	protobufV2      = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	protobufV3      = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	protobufV2First = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	protobufV3First = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// publisher generates OpenAPI documents from the catalogue's types.
type publisher struct {
	catalogue  *catalogue.Catalogue
	vocabulary vocabulary.Vocabulary
	release    string
	cbor       bool
}

// addOpenAPI adds /openapi/v2 with all types, and /openapi/v3 with a document per group
// version.
func (d *Documents) addOpenAPI(p *publisher, extensions map[string]*OpenAPI) {
	var all []*catalogue.Type
	versions := map[string]document{}
	for name, x := range extensions {
		form := newDocument(mediaJSON, func() ([]byte, error) { return x.v3, nil })
		versions[name] = form
		d.add("/openapi/v3/"+name, inProtobuf(form, protobufV3, protobufV3First, protobufOfV3)...)
	}
	for _, g := range p.catalogue.Groups() {
		for _, v := range g.Versions {
			name := strings.TrimPrefix(root(v.Types[0]), "/")
			if extensions[name] != nil {
				continue // replaces custom types
			}
			all = append(all, v.Types...)
			form := newDense(func() (any, error) { return thirdVersion(p.document(v.Types)), nil })
			versions[name] = form
			d.add("/openapi/v3/"+name, inProtobuf(form, protobufV3, protobufV3First, protobufOfV3)...)
		}
	}
	d.add("/openapi/v3", newDense(func() (any, error) { return index(versions) }))
	whole := newDense(func() (any, error) { return p.with(reduce.Document(p.document(all)), extensions), nil })
	d.add("/openapi/v2", inProtobuf(whole, protobufV2, protobufV2First, protobufOfV2)...)
}

// index returns the document of /openapi/v3: the path of each group version's document,
// with a hash of its content.
func index(versions map[string]document) (any, error) {
	type reference struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := map[string]reference{}
	for name, form := range versions {
		b, err := form.body()
		if err != nil {
			return nil, err
		}
		paths[name] = reference{"/openapi/v3/" + name + "?hash=" + url.QueryEscape(b.etag)}
	}
	return map[string]any{"paths": paths}, nil
}

// inProtobuf returns the forms of an OpenAPI document: JSON, and Protobuf converted
// from it, under both names of its media type.
func inProtobuf(form document, mediaType, first string, convert func([]byte) (proto.Message, error)) []document {
	binary := newDocument(mediaType, func() ([]byte, error) {
		b, err := form.body()
		if err != nil {
			return nil, err
		}
		plain, err := b.plain()
		if err != nil {
			return nil, err
		}
		message, err := convert(plain)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(message)
	})
	same := binary
	same.mediaType, same.sentAs = first, mediaType
	return []document{form, binary, same}
}

func protobufOfV2(plain []byte) (proto.Message, error) { return openapi_v2.ParseDocument(plain) }
func protobufOfV3(plain []byte) (proto.Message, error) { return openapi_v3.ParseDocument(plain) }

// document returns the OpenAPI document of some types: their paths, and all schemas that
// these refer to.
func (p *publisher) document(types []*catalogue.Type) *spec.Swagger {
	paths := &spec.Paths{Paths: map[string]spec.PathItem{}}
	definitions := &definitions{publisher: p, found: spec.Definitions{}}
	for _, t := range types {
		(&describer{publisher: p, t: t, paths: paths.Paths, definitions: definitions}).describe()
	}
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0",
		Info: &spec.Info{InfoProps: spec.InfoProps{
			Title: "Portico", Version: p.release, Description: "Resources of a container cluster.",
		}},
		Paths:       paths,
		Definitions: definitions.found,
		SecurityDefinitions: spec.SecurityDefinitions{"BearerToken": &spec.SecurityScheme{SecuritySchemeProps: spec.SecuritySchemeProps{
			Type: "apiKey", Name: "authorization", In: "header", Description: "Bearer token",
		}}},
		Security: []map[string][]string{{"BearerToken": {}}},
	}}
}

// definitions collects the schemas of a document.
type definitions struct {
	*publisher
	found spec.Definitions
}

// reference returns a reference to the schema of a kind, and adds the schema and all
// that it refers to. The schema of a kind without one is that of a string.
func (d *definitions) reference(k kindRef) *spec.Schema {
	name, ok := d.catalogue.Body(k.group, k.version, k.kind)
	if !ok {
		return spec.StringProperty()
	}
	return d.named(name)
}

// named returns a reference to a schema by its definition name.
func (d *definitions) named(name string) *spec.Schema {
	d.add(name)
	return spec.RefProperty(definitionPointer + name)
}

const definitionPointer = "#/definitions/"

func (d *definitions) add(name string) {
	if _, done := d.found[name]; done {
		return
	}
	schema := d.catalogue.Definitions().Get(name)
	if schema == nil {
		return
	}
	d.found[name] = spec.Schema{}
	d.found[name] = d.publish(*schema)
}

// publish copies a schema with the vocabulary's names of extensions, and adds what it
// refers to.
func (d *definitions) publish(s spec.Schema) spec.Schema {
	if name, ok := strings.CutPrefix(s.Ref.String(), definitionPointer); ok {
		d.add(name)
	}
	s.Extensions = d.extensions(s.Extensions)
	if s.Properties != nil {
		properties := make(map[string]spec.Schema, len(s.Properties))
		for name, property := range s.Properties {
			properties[name] = d.publish(property)
		}
		s.Properties = properties
	}
	if s.Items != nil && s.Items.Schema != nil {
		items := d.publish(*s.Items.Schema)
		s.Items = &spec.SchemaOrArray{Schema: &items}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		values := d.publish(*s.AdditionalProperties.Schema)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
	}
	s.AllOf = slices.Clone(s.AllOf)
	for i, part := range s.AllOf {
		s.AllOf[i] = d.publish(part)
	}
	return s
}

// extensions translates original names of extensions to the vocabulary.
func (p *publisher) extensions(original spec.Extensions) spec.Extensions {
	prefix := vocabulary.K8s().Extension
	if p.vocabulary.Extension == prefix {
		return original
	}
	renamed := make(spec.Extensions, len(original))
	for name, value := range original {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			name = p.vocabulary.Extension + rest
		}
		renamed[name] = value
	}
	return renamed
}

// alternatives are the types of the values of definitions that OpenAPI v2 calls strings, by the
// end of their names.
var alternatives = map[string][]string{".api.resource.Quantity": {"string", "number"}, ".util.intstr.IntOrString": {"integer", "string"}}

// thirdVersion returns a document in OpenAPI v3.
func thirdVersion(document *spec.Swagger) *spec3.OpenAPI {
	converted := openapiconv.ConvertV2ToV3(document)
	for name, s := range converted.Components.Schemas {
		for end, types := range alternatives {
			if !strings.HasSuffix(name, end) {
				continue
			}
			changed := *s
			changed.Type, changed.OneOf = nil, nil
			for _, t := range types {
				changed.OneOf = append(changed.OneOf, spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{t}}})
			}
			converted.Components.Schemas[name] = &changed
		}
	}
	return converted
}
