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

// Fragment is what a document says about some group versions. It is immutable.
type Fragment struct {
	json   [sections]text
	binary func() ([sections]text, error)
}

// New encodes a document as a fragment. Together is set if no path of another fragment is between two of this one in the
// order of all. Errors are those of the libraries.
func New(document *spec.Swagger, together bool) (*Fragment, error) {
	f := &Fragment{}
	var err error
	if f.json[paths], err = encoded(document.Paths.Paths, together); err != nil {
		return nil, err
	}
	if f.json[definitions], err = encoded(document.Definitions, false); err != nil {
		return nil, err
	}
	if f.json[parameters], err = encoded(document.Parameters, false); err != nil {
		return nil, err
	}
	f.binary = sync.OnceValues(func() ([sections]text, error) { return f.toProtobuf(together) })
	return f, nil
}

// encoded returns the members of an object in JSON, in the order of their names; together, as one item.
func encoded[T any](members map[string]T, together bool) (text, error) {
	var all builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key, err := json.Marshal(name)
		if err != nil {
			return text{}, err
		}
		value, err := json.Marshal(members[name])
		if err != nil {
			return text{}, err
		}
		all.add(name, comma, key, colon, value)
	}
	return all.text(together)
}

var comma, colon = []byte(","), []byte(":")

// toProtobuf returns the sections in Protobuf.
func (f *Fragment) toProtobuf(together bool) (all [sections]text, err error) {
	var plain bytes.Buffer
	if err := (Whole{Head: &spec.Swagger{SwaggerProps: spec.SwaggerProps{Swagger: "2.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "a", Version: "1"}}}}, Fragments: []*Fragment{f}}).JSON(&plain); err != nil {
		return all, err
	}
	document, err := parse(plain.Bytes())
	if err != nil {
		return all, err
	}
	var parts [sections]builder
	for _, p := range document.GetPaths().GetPath() {
		if err := parts[paths].addMessage(p.Name, pathNumber, p); err != nil {
			return all, err
		}
	}
	for _, d := range document.GetDefinitions().GetAdditionalProperties() {
		if err := parts[definitions].addMessage(d.Name, memberNumber, d); err != nil {
			return all, err
		}
	}
	for _, p := range document.GetParameters().GetAdditionalProperties() {
		if err := parts[parameters].addMessage(p.Name, memberNumber, p); err != nil {
			return all, err
		}
	}
	for i := range parts {
		if all[i], err = parts[i].text(together && section(i) == paths); err != nil {
			return all, err
		}
	}
	return all, nil
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
