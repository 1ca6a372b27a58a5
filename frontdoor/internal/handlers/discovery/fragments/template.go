package fragments

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Template is what documents say about the paths of types that differ in their names only. It is encoded once for all of
// them, with stand-ins for the names. It is immutable.
type Template struct {
	paths []templatePath
	// binary has the paths in Protobuf, in the same order.
	binary func() ([]pattern, error)
	// rest are the other sections of the document.
	rest *Fragment
}

// templatePath is a path and what a document says about it in JSON.
type templatePath struct{ name, json pattern }

// NewTemplate encodes a document with stand-ins, each in the place of the name with the same index.
func NewTemplate(document *spec.Swagger, standIns []string) (*Template, error) {
	others := *document
	others.Paths = &spec.Paths{}
	rest, err := New(&others, false)
	if err != nil {
		return nil, err
	}
	t := &Template{rest: rest}
	for name, item := range document.Paths.Paths {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		t.paths = append(t.paths, templatePath{patternOf(name, standIns), patternOf(string(key)+":"+string(value), standIns)})
	}
	t.binary = sync.OnceValues(func() ([]pattern, error) { return t.toProtobuf(standIns) })
	return t, nil
}

// toProtobuf returns the paths in Protobuf.
func (t *Template) toProtobuf(standIns []string) (all []pattern, err error) {
	for _, p := range t.paths {
		member := p.json.append(nil, standIns)
		document, err := parseFragment(func(to *bytes.Buffer) error {
			to.WriteString(`{"swagger":"2.0","info":{"title":"a","version":"1"},"paths":{`)
			to.Write(member)
			to.WriteString(`}}`)
			return nil
		})
		if err != nil {
			return nil, err
		}
		one := builder{}
		path := document.GetPaths().GetPath()[0] // it has this one
		if err := one.addMessage(path.Name, pathNumber, path); err != nil {
			return nil, err
		}
		all = append(all, patternOfMessage(one.plain, document.GetPaths().ProtoReflect().Descriptor(), standIns))
	}
	return all, nil
}

// Filled is a template with names, which are Plain.
type Filled struct {
	Template *Template
	Names    []string
}

// Plain reports whether documents write names as they are, without quotes or escapes.
func Plain(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return name == "" || strings.ContainsFunc(name, special) || !isText(name) })
}

// special reports whether an encoding may write a character in another way than it is.
func special(r rune) bool {
	return !isLetter(r) && (r < '0' || r > '9') && !strings.ContainsRune("-._", r)
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// words are all that begin with a letter and are no texts in YAML, in any version and case.
var words = []string{"y", "yes", "n", "no", "on", "off", "true", "false", "null"}

// isText reports whether YAML, which values of extensions are in, reads a name as a text and not as a number or another value.
func isText(name string) bool {
	if isLetter(rune(name[0])) {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, name) })
	}
	plain, err := yaml.Marshal(name)
	return err == nil && string(plain) == name+"\n"
}

// filling is what a fragment says about the paths of filled templates.
type filling struct {
	of    []Filled
	first string // the first path
}

func newFilling(of []Filled) *filling {
	if len(of) == 0 {
		return nil
	}
	f := &filling{of: of}
	if all := f.sorted(); len(all) > 0 {
		f.first = all[0].name
	}
	return f
}

// place is a path of one of the templates of a filling.
type place struct {
	name     string
	of       Filled
	position int
}

// sorted returns all paths in the order of their names.
func (f *filling) sorted() (all []place) {
	for _, of := range f.of {
		for i, p := range of.Template.paths {
			all = append(all, place{string(p.name.append(nil, of.Names)), of, i})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.name, b.name) })
	return all
}

// appendJSON appends the paths, separated by commas.
func (f *filling) appendJSON(to []byte) ([]byte, error) {
	for i, p := range f.sorted() {
		if i > 0 {
			to = append(to, comma...)
		}
		to = p.of.Template.paths[p.position].json.append(to, p.of.Names)
	}
	return to, nil
}

// appendProtobuf appends the paths.
func (f *filling) appendProtobuf(to []byte) ([]byte, error) {
	for _, p := range f.sorted() {
		all, err := p.of.Template.binary()
		if err != nil {
			return nil, err
		}
		to = all[p.position].append(to, p.of.Names)
	}
	return to, nil
}

// pattern is a text with places for names.
type pattern []piece

// piece is one of: a literal, a name, and a field with a length.
type piece struct {
	literal []byte
	name    int // of those with neither a literal nor a tag
	tag     []byte
	field   pattern
}

// patternOf returns a text in whose stand-ins' places names are.
func patternOf(text string, standIns []string) (all pattern) {
	for text != "" {
		at, which := len(text), -1
		for i, s := range standIns {
			if found := strings.Index(text, s); found >= 0 && (found < at || found == at && len(s) > len(standIns[which])) {
				at, which = found, i
			}
		}
		if at > 0 {
			all = append(all, piece{literal: []byte(text[:at])})
		}
		if which < 0 {
			break
		}
		all, text = append(all, piece{name: which}), text[at+len(standIns[which]):]
	}
	return all
}

// patternOfMessage returns an encoded message in whose stand-ins' places names are. Lengths of what has any are those
// with the names.
func patternOfMessage(message []byte, of protoreflect.MessageDescriptor, standIns []string) (all pattern) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if tag < 0 || size < 0 {
			return append(all, piece{literal: message}) // which does not occur: the message has been encoded here
		}
		whole, field := message[:tag+size], of.Fields().ByNumber(number)
		message = message[tag+size:]
		var inner pattern
		if kind == protowire.BytesType && field != nil {
			value, _ := protowire.ConsumeBytes(whole[tag:])
			switch field.Kind() {
			case protoreflect.MessageKind:
				inner = patternOfMessage(value, field.Message(), standIns)
			case protoreflect.StringKind:
				inner = patternOf(string(value), standIns)
			}
		}
		if !inner.named() {
			if n := len(all); n > 0 && all[n-1].literal != nil {
				all[n-1].literal = append(all[n-1].literal, whole...)
			} else {
				all = append(all, piece{literal: bytes.Clone(whole)})
			}
			continue
		}
		all = append(all, piece{tag: bytes.Clone(whole[:tag]), field: inner})
	}
	return all
}

// named reports whether the text depends on names.
func (p pattern) named() bool {
	return slices.ContainsFunc(p, func(of piece) bool { return of.literal == nil })
}

// append appends the text with names.
func (p pattern) append(to []byte, names []string) []byte {
	for _, of := range p {
		switch {
		case of.literal != nil:
			to = append(to, of.literal...)
		case of.tag != nil:
			to = protowire.AppendVarint(append(to, of.tag...), uint64(of.field.size(names)))
			to = of.field.append(to, names)
		default:
			to = append(to, names[of.name]...)
		}
	}
	return to
}

// size returns the length of the text with names.
func (p pattern) size(names []string) (n int) {
	for _, of := range p {
		switch {
		case of.literal != nil:
			n += len(of.literal)
		case of.tag != nil:
			inner := of.field.size(names)
			n += len(of.tag) + protowire.SizeBytes(inner)
		default:
			n += len(names[of.name])
		}
	}
	return n
}
