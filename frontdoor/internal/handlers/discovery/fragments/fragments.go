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
		all[definitions], err = encoded(document.Definitions, false, appendSchema)
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
	if f.json[definitions], err = encoded(document.Definitions, false, appendSchema); err != nil {
		return nil, err
	}
	if f.json[parameters], err = encoded(document.Parameters, false, marshal); err != nil {
		return nil, err
	}
	f.binary = sync.OnceValues(func() (*[sections]text, error) { return f.toProtobuf(together) })
	return f, nil
}

// encoded returns the members of an object in JSON, in the order of their names; together, as one item.
func encoded[T any](members map[string]T, together bool, encode func([]byte, T) ([]byte, error)) (text, error) {
	all := newBuilder()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		all.begin(comma)
		var err error
		if all.plain, err = marshal(all.plain, name); err != nil {
			return text{}, err
		}
		if all.plain, err = encode(append(all.plain, ':'), members[name]); err != nil {
			return text{}, err
		}
		all.end(name)
	}
	return all.text(together)
}

// marshal appends a value in JSON.
func marshal[T any](to []byte, value T) ([]byte, error) {
	encoded, err := json.Marshal(value)
	return append(to, encoded...), err
}

var comma = []byte(",")

// toProtobuf returns the sections in Protobuf.
func (f *Fragment) toProtobuf(together bool) (*[sections]text, error) {
	head := &spec.Swagger{SwaggerProps: spec.SwaggerProps{Swagger: "2.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "a", Version: "1"}}}}
	document, err := parseFragment(func(to *bytes.Buffer) error {
		return Whole{Head: head, Fragments: []*Fragment{{json: f.json}}}.JSON(to)
	})
	if err != nil {
		return nil, err
	}
	var parts [sections]*builder
	for i := range parts {
		parts[i] = newBuilder()
	}
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
	start int // of the item that has begun
}

// spaces are for texts while they are collected.
var spaces = sync.Pool{New: func() any { return new([]byte) }}

func newBuilder() *builder { return &builder{plain: (*spaces.Get().(*[]byte))[:0]} }

// begin begins an item after the separator from the one before.
func (b *builder) begin(separator []byte) {
	if len(b.items) > 0 {
		b.plain = append(b.plain, separator...)
	}
	b.start = len(b.plain)
}

// end ends the item that has begun.
func (b *builder) end(name string) { b.items = append(b.items, item{name, b.start, len(b.plain)}) }

// messages returns schemas in Protobuf, in the order of their names.
func messages(of spec.Definitions) (text, error) {
	all := newBuilder()
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
	b.begin(nil)
	b.plain = protowire.AppendVarint(protowire.AppendTag(b.plain, number, protowire.BytesType), uint64(proto.Size(m)))
	var err error
	b.plain, err = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b.plain, m)
	b.end(name)
	return err
}

// text returns what was added; together, as one item with the name of the first. Nothing may be added afterwards.
func (b *builder) text(together bool) (text, error) {
	defer spaces.Put(&b.plain)
	items := slices.Clip(b.items)
	if together && len(items) > 0 {
		items = []item{{items[0].name, 0, len(b.plain)}}
	}
	zipped, err := compressed(b.plain)
	return text{zipped: zipped, size: len(b.plain), items: items}, err
}
