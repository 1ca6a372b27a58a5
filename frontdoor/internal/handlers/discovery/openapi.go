package discovery

import (
	"context"
	"net/url"
	"sync"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
)

// Media types of the OpenAPI documents in Protobuf. Clients still request them under
// their original names, whose @ is not valid in a media type.
const (
	protobufV2      = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	protobufV3      = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	protobufV2First = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	protobufV3First = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// addOpenAPI adds /openapi/v2 with all types, and /openapi/v3 with a document per group
// version and for each path of discovery.
func (d *Documents) addOpenAPI(o Options, forms map[string][]document) {
	b, kept := o.builder(), d.library
	versions := map[string]func() (string, error){}
	add := func(name string, hash func() (string, error), of ...document) {
		versions[name] = hash
		forms["/openapi/v3/"+name] = of
	}
	parts := b.Parts()
	for name, x := range d.openAPI.extensions {
		delete(parts, name) // custom types, which the extension replaces
		form := newDocument(mediaJSON, func() ([]byte, error) { return x.v3, nil })
		add(name, form.etag, kept.inForms(form)...)
	}
	for name, part := range parts {
		some, only := part.Custom()
		if !some {
			add(name, kept.thirds[name][0].etag, kept.thirds[name]...)
			continue
		}
		if !only { // a definition adds types to a built-in group version, which is rare
			form := newDense(func() (any, error) { return b.V3(part), nil })
			add(name, form.etag, kept.inForms(form)...)
			continue
		}
		add(name, func() (string, error) { return kept.hash(part) }, kept.shelved(part, b)...)
	}
	forms["/openapi/v3"] = []document{newDense(func() (any, error) { return index(versions) })}
	forms["/openapi/v2"] = kept.second.forms(d.generation, types{b, kept.builder, parts, d.openAPI.extensions})
}

// index returns the document of /openapi/v3: the path of each group version's document,
// with a hash of its content.
func index(versions map[string]func() (string, error)) (any, error) {
	type reference struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := map[string]reference{}
	for name, hash := range versions {
		etag, err := hash()
		if err != nil {
			return nil, err
		}
		paths[name] = reference{"/openapi/v3/" + name + "?hash=" + url.QueryEscape(etag)}
	}
	return map[string]any{"paths": paths}, nil
}

// converter makes the Protobuf form of OpenAPI documents of one version.
type converter struct {
	mediaType, first string // the names of the media type
	convert          func([]byte) (proto.Message, error)
	// one is held during a conversion, which takes a multiple of the document.
	one *sync.Mutex
}

// from returns the conversion of a document.
func (c converter) from(form document) func() ([]byte, error) {
	return func() ([]byte, error) {
		b, err := form.body(context.Background())
		if err != nil {
			return nil, err
		}
		plain, err := b.plain.get()
		if err != nil {
			return nil, err
		}
		c.one.Lock()
		defer c.one.Unlock()
		message, err := c.convert(*plain)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(message)
	}
}

// forms returns the forms of an OpenAPI document: JSON, and Protobuf under both names of its media type.
func (c converter) forms(form, binary document) []document {
	same := binary
	same.mediaType, same.sentAs = c.first, c.mediaType
	return []document{form, binary, same}
}

func protobufOfV3(plain []byte) (proto.Message, error) { return openapi_v3.ParseDocument(plain) }
