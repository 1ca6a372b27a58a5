package fragments

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Whole is a document of fragments. Where several have a member of the same name, that of the first of them counts.
type Whole struct {
	// Head is the document without paths, definitions and parameters.
	Head      *spec.Swagger
	Fragments []*Fragment
}

// JSON writes the document, of fragments that have that form, in JSON: the same bytes as json.Marshal returns for all of it.
func (w Whole) JSON(to io.Writer) error {
	before, after, err := w.head()
	if err != nil {
		return err
	}
	all := writer{to: to}
	all.write(before)
	for s, name := range []string{"", `},"definitions":`, `},"parameters":`} {
		members, err := w.members(section(s), jsonForm)
		if err != nil {
			return err
		}
		if section(s) != paths && len(members) == 0 {
			continue
		}
		all.write([]byte(name))
		all.write([]byte("{"))
		for i, m := range members {
			if i > 0 {
				all.write(comma)
			}
			all.member(m)
		}
	}
	all.write([]byte("}"))
	all.write(after)
	return all.err
}

// pathsMember is where the head has no paths.
var pathsMember = []byte(`"paths":{}`)

// head returns what is before the value of the paths, and what is after all sections, which follow each other.
func (w Whole) head() (before, after []byte, err error) {
	plain, err := w.headJSON()
	if err != nil {
		return nil, nil, err
	}
	before, after, ok := bytes.Cut(plain, pathsMember)
	if !ok {
		return nil, nil, errors.New("an OpenAPI document has no paths")
	}
	return append(bytes.Clone(before), bytes.TrimSuffix(pathsMember, []byte("{}"))...), after, nil
}

func (w Whole) headJSON() ([]byte, error) {
	head := *w.Head
	head.Paths, head.Definitions, head.Parameters = &spec.Paths{}, nil, nil
	return json.Marshal(head)
}

// sectionNumbers are the numbers of the sections in a document in Protobuf.
var sectionNumbers = [sections]protowire.Number{paths: 8, definitions: 9, parameters: 10}

// Protobuf writes the document, of fragments that have that form, in Protobuf: the same bytes as if all of it had been converted from JSON.
func (w Whole) Protobuf(to io.Writer) error {
	plain, err := w.headJSON()
	if err != nil {
		return err
	}
	document, err := parse(plain)
	if err != nil {
		return err
	}
	document.Paths = nil
	head, err := proto.Marshal(document)
	if err != nil {
		return err
	}
	before := 0 // all fields with a smaller number than that of the paths are first
	for before < len(head) {
		number, _, n := protowire.ConsumeField(head[before:])
		if err := protowire.ParseError(n); err != nil {
			return err
		}
		if number > sectionNumbers[paths] {
			break
		}
		before += n
	}
	if err := Each(len(w.Fragments), func(i int) error {
		_, err := w.Fragments[i].binary()
		return err
	}); err != nil {
		return err
	}
	all := writer{to: to}
	all.write(head[:before])
	for s, number := range sectionNumbers {
		members, err := w.members(section(s), binaryForm)
		if err != nil {
			return err
		}
		if section(s) != paths && len(members) == 0 {
			continue
		}
		size := 0
		for _, m := range members {
			size += m.size()
		}
		all.write(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(size)))
		for _, m := range members {
			all.member(m)
		}
	}
	all.write(head[before:])
	return all.err
}

// form is an encoding of fragments.
type form struct {
	texts func(*Fragment) (*[sections]text, error)
	// append appends paths of templates, and sizes them.
	append func(*filling, []byte) ([]byte, error)
}

var (
	jsonForm   = form{func(f *Fragment) (*[sections]text, error) { return f.json, nil }, (*filling).appendJSON}
	binaryForm = form{func(f *Fragment) (*[sections]text, error) { return f.binary() }, (*filling).appendProtobuf}
)

// member is an item of a text, or the paths of templates.
type member struct {
	item
	of     *text
	filled func(to []byte) ([]byte, error) // nil for an item
}

func (m member) size() int { return m.end - m.start }

// members returns the items of a section in the order of their names.
func (w Whole) members(s section, in form) (all []member, err error) {
	of := func(f *Fragment) error {
		texts, err := in.texts(f)
		if err != nil {
			return err
		}
		for _, at := range texts[s].items {
			all = append(all, member{item: at, of: &texts[s]})
		}
		return nil
	}
	var space []byte
	templates := map[*Template]bool{}
	for _, f := range w.Fragments {
		if err := of(f); err != nil {
			return nil, err
		}
		if f.filling == nil {
			continue
		}
		for _, filled := range f.filling.of {
			templates[filled.Template] = true
		}
		if s == paths && f.filling.first != "" {
			filled := func(to []byte) ([]byte, error) { return in.append(f.filling, to) }
			if space, err = filled(space[:0]); err != nil {
				return nil, err
			}
			all = append(all, member{item: item{f.filling.first, 0, len(space)}, filled: filled})
		}
	}
	for t := range templates { // where they have members of the same name, these are the same
		if err := of(t.rest); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b member) bool { return a.name == b.name }), nil
}

// writer writes pieces until the first error.
type writer struct {
	to io.Writer
	reader
	space []byte
	err   error
}

func (w *writer) write(p []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(p)
	}
}

func (w *writer) member(m member) {
	if w.err != nil {
		return
	}
	var plain []byte
	if m.filled != nil {
		w.space, w.err = m.filled(w.space[:0])
		plain = w.space
	} else {
		plain, w.err = w.read(m.of, m.item)
	}
	w.write(plain)
}
