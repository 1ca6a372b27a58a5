package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/openapi"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
)

// Library holds what the OpenAPI documents of all generations share, so that a change of one definition costs
// nothing for other types: the documents of built-in types, those of custom types that were requested last,
// and the fragments of /openapi/v2. All of it depends on what is stored now, never on the number of changes.
type Library struct {
	builder *openapi.Builder // of the built-in types
	// thirds are the documents of OpenAPI v3 about built-in types, by their paths below /openapi/v3.
	thirds map[string][]document
	third  converter
	*Shelf
	// program is a hash of a document about custom types, which changes with what makes documents.
	program func() (string, error)

	second second
}

func newLibrary(o Options) *Library {
	o.Catalogue = o.Catalogue.OfBuiltIn()
	l := &Library{builder: o.builder(), thirds: map[string][]document{}, Shelf: newShelf(),
		third: converter{protobufV3, protobufV3First, protobufOfV3, &sync.Mutex{}}}
	for name, part := range l.builder.Parts() {
		l.thirds[name] = l.inForms(newDense(func() (any, error) { return l.builder.V3(part), nil }))
	}
	l.program = sync.OnceValues(l.specimen)
	return l
}

// inForms returns the forms of a document of v3.
func (l *Library) inForms(form document) []document {
	return l.third.forms(form, newDocument(protobufV3, l.third.from(form)))
}

// specimen returns the hash of a document about custom types that have everything that a document can show.
func (l *Library) specimen() (string, error) {
	surface, err := crd.Specimen(l.builder.Vocabulary, l.builder.Catalogue)
	if err != nil {
		return "", err
	}
	b := *l.builder
	b.Catalogue = b.Catalogue.With(surface)
	for _, part := range b.Parts() {
		if some, _ := part.Custom(); some {
			plain, err := json.Marshal(b.V3(part))
			sum := sha256.Sum256(plain)
			return string(sum[:]), err
		}
	}
	return "", nil
}

// hash returns the hash of the document about custom types. It is computed from what their definitions say, and not
// from the document, which is made when it is requested.
func (l *Library) hash(p openapi.Part) (string, error) {
	program, err := l.program()
	sum := sha256.Sum256([]byte(program + p.Hash()))
	return textOf(sum[:]), err
}

// shelved returns the forms of the document about custom types, which are made when they are requested.
func (l *Library) shelved(p openapi.Part, b *openapi.Builder) []document {
	form := document{mediaType: mediaJSON, body: func(context.Context) (*body, error) {
		hash, err := l.hash(p)
		if err != nil {
			return nil, err
		}
		return l.get(mediaJSON+hash, func() (*body, error) {
			plain, err := json.Marshal(b.V3(p))
			if err != nil {
				return nil, err
			}
			made, err := compressed(plain)
			if err == nil {
				made.etag = hash
			}
			return made, err
		})
	}}
	binary := document{mediaType: protobufV3, body: func(context.Context) (*body, error) {
		hash, err := l.hash(p)
		if err != nil {
			return nil, err
		}
		return l.get(protobufV3+hash, func() (*body, error) {
			plain, err := l.third.from(form)()
			if err != nil {
				return nil, err
			}
			return compressed(plain)
		})
	}}
	return l.third.forms(form, binary)
}
