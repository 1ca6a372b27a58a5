// Package fragments puts a document of OpenAPI v2 together from fragments. Each of them describes some
// group versions and is encoded once, so that a document about thousands of types is not made again as a
// whole when one of them changes. It knows no types, and serves nothing. It serves "Groups and paths" of the
// specification.
package fragments

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// section is a part of a document that has members with names.
type section int

const (
	paths section = iota
	definitions
	parameters
	sections
)

// Form is an encoding of documents.
type Form int

// The forms of documents.
const (
	JSON Form = iota
	Protobuf
)

// Fragment is what a document says about some group versions. It is immutable.
type Fragment struct {
	json   *[sections]text                 // nil if it was not needed yet
	binary func() (*[sections]text, error) // likewise
	// filling are paths that differ from those of other fragments in names only; nil for none.
	filling *filling
}

// Fill returns a fragment in one form. It describes the paths of filled templates beside a document with definitions only.
// No path of another fragment is between two of these in the order of all. Errors are those of the libraries.
func Fill(in Form, document *spec.Swagger, templates ...Filled) (*Fragment, error) {
	f := &Fragment{filling: newFilling(templates)}
	var all [sections]text
	var err error
	switch in {
	case JSON:
		all[definitions], err = encoded(document.Definitions, false, encodeSchema)
		f.json = &all
	case Protobuf:
		all[definitions], err = messages(document.Definitions)
		f.binary = func() (*[sections]text, error) { return &all, nil }
	}
	return f, err
}

// Has reports whether the fragment is there in a form.
func (f *Fragment) Has(in Form) bool {
	if in == JSON {
		return f.json != nil
	}
	return f.binary != nil
}

// With returns a fragment that also has the forms of another one about the same; nil for none.
func (f *Fragment) With(other *Fragment) *Fragment {
	both := *f
	if other != nil && both.json == nil {
		both.json = other.json
	}
	if other != nil && both.binary == nil {
		both.binary = other.binary
	}
	return &both
}

// New encodes a document as a fragment. Together is set if no path of another fragment is between two of this one in the
// order of all. Errors are those of the libraries.
func New(document *spec.Swagger, together bool) (*Fragment, error) {
	f := &Fragment{json: &[sections]text{}}
	var err error
	if f.json[paths], err = encoded(document.Paths.Paths, together, marshal); err != nil {
		return nil, err
	}
	if f.json[definitions], err = encoded(document.Definitions, false, encodeSchema); err != nil {
		return nil, err
	}
	if f.json[parameters], err = encoded(document.Parameters, false, marshal); err != nil {
		return nil, err
	}
	f.binary = sync.OnceValues(func() (*[sections]text, error) { return f.toProtobuf(together) })
	return f, nil
}

// encoded returns the members of an object in JSON, in the order of their names; together, as one item.
func encoded[T any](members map[string]T, together bool, encode func(T) ([]byte, error)) (text, error) {
	var all builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key, err := json.Marshal(name)
		if err != nil {
			return text{}, err
		}
		value, err := encode(members[name])
		if err != nil {
			return text{}, err
		}
		all.add(name, comma, key, colon, value)
	}
	return all.text(together)
}

func marshal[T any](value T) ([]byte, error) { return json.Marshal(value) }

var comma, colon = []byte(","), []byte(":")

// toProtobuf returns the sections in Protobuf.
func (f *Fragment) toProtobuf(together bool) (*[sections]text, error) {
	head := &spec.Swagger{SwaggerProps: spec.SwaggerProps{Swagger: "2.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "a", Version: "1"}}}}
	document, err := parseFragment(func(to *bytes.Buffer) error {
		return Whole{Head: head, Fragments: []*Fragment{{json: f.json}}}.JSON(to)
	})
	if err != nil {
		return nil, err
	}
	var parts [sections]builder
	var all [sections]text
	for _, p := range document.GetPaths().GetPath() {
		if err := parts[paths].addMessage(p.Name, pathNumber, p); err != nil {
			return nil, err
		}
	}
	for _, d := range document.GetDefinitions().GetAdditionalProperties() {
		if err := parts[definitions].addMessage(d.Name, memberNumber, d); err != nil {
			return nil, err
		}
	}
	for _, p := range document.GetParameters().GetAdditionalProperties() {
		if err := parts[parameters].addMessage(p.Name, memberNumber, p); err != nil {
			return nil, err
		}
	}
	for i := range parts {
		if all[i], err = parts[i].text(together && section(i) == paths); err != nil {
			return nil, err
		}
	}
	return &all, nil
}

// parseFragment parses a document that write writes in JSON.
func parseFragment(write func(*bytes.Buffer) error) (*openapi_v2.Document, error) {
	var plain bytes.Buffer
	if err := write(&plain); err != nil {
		return nil, err
	}
	return parse(plain.Bytes())
}

// Numbers of fields in the messages of OpenAPI v2: a path in Paths, a member in the other sections.
const pathNumber, memberNumber protowire.Number = 2, 1

// builder collects the items of a text.
type builder struct {
	plain []byte
	items []item
}

// add adds an item that begins after the first piece, which separates it from the one before.
func (b *builder) add(name string, separator []byte, pieces ...[]byte) {
	if len(b.items) > 0 {
		b.plain = append(b.plain, separator...)
	}
	start := len(b.plain)
	for _, piece := range pieces {
		b.plain = append(b.plain, piece...)
	}
	b.items = append(b.items, item{name, start, len(b.plain)})
}

// messages returns schemas in Protobuf, in the order of their names.
func messages(of spec.Definitions) (text, error) {
	var all builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		s := of[name]
		m, err := messageOf(&s)
		if err != nil {
			return text{}, err
		}
		if err := all.addMessage(name, memberNumber, &openapi_v2.NamedSchema{Name: name, Value: m}); err != nil {
			return text{}, err
		}
	}
	return all.text(false)
}

// addMessage adds a message as an item of a repeated field.
func (b *builder) addMessage(name string, number protowire.Number, m proto.Message) error {
	encoded, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	b.add(name, nil, protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), encoded))
	return nil
}

// text returns what was added; together, as one item with the name of the first.
func (b *builder) text(together bool) (text, error) {
	items := slices.Clip(b.items)
	if together && len(items) > 0 {
		items = []item{{items[0].name, 0, len(b.plain)}}
	}
	zipped, err := compressed(b.plain)
	return text{zipped: zipped, size: len(b.plain), items: items}, err
}
