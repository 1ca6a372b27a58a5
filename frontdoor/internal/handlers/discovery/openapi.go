package discovery

import (
	"net/url"
	"sync"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/openapi"
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
func (d *Documents) addOpenAPI(b *openapi.Builder, extensions map[string]*OpenAPI, before *Documents) {
	versions := map[string]document{}
	add := func(name string, forms []document) {
		versions[name] = forms[0]
		d.add("/openapi/v3/"+name, forms...)
	}
	one := &sync.Mutex{}
	inForms := converter{protobufV3, protobufV3First, protobufOfV3, one}.forms
	parts := b.Parts()
	d.parts = parts
	for name, x := range extensions {
		delete(parts, name) // custom types, which the extension replaces
		add(name, inForms(newDocument(mediaJSON, func() ([]byte, error) { return x.v3, nil })))
	}
	for name, part := range parts {
		forms := before.formsOf(name, part)
		if forms == nil {
			forms = inForms(newDense(func() (any, error) { return b.V3(part), nil }))
		}
		add(name, forms)
	}
	d.add("/openapi/v3", newDense(func() (any, error) { return index(versions) }))
	whole := newDense(func() (any, error) { return with(b.V2(parts), extensions), nil })
	d.add("/openapi/v2", converter{protobufV2, protobufV2First, protobufOfV2, one}.forms(whole)...)
}

// formsOf returns the forms of the document of a part, if it is the same here and has been generated. One
// that has not been generated would keep the whole catalogue that it was made for.
func (d *Documents) formsOf(name string, part openapi.Part) []document {
	if d == nil {
		return nil
	}
	if known, ok := d.parts[name]; !ok || !known.SameAs(part) {
		return nil
	}
	if forms := d.forms["/openapi/v3/"+name]; forms[0].generated.Load() {
		return forms
	}
	return nil
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

// converter makes the Protobuf form of OpenAPI documents of one version.
type converter struct {
	mediaType, first string // the names of the media type
	convert          func([]byte) (proto.Message, error)
	// one is held during a conversion, which takes a multiple of the document.
	one *sync.Mutex
}

// forms returns the forms of an OpenAPI document: JSON, and Protobuf converted
// from it, under both names of its media type.
func (c converter) forms(form document) []document {
	binary := newDocument(c.mediaType, func() ([]byte, error) {
		b, err := form.body()
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
	})
	same := binary
	same.mediaType, same.sentAs = c.first, c.mediaType
	return []document{form, binary, same}
}

func protobufOfV2(plain []byte) (proto.Message, error) { return openapi_v2.ParseDocument(plain) }
func protobufOfV3(plain []byte) (proto.Message, error) { return openapi_v3.ParseDocument(plain) }
