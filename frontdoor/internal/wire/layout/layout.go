// Package layout converts compact JSON, as objects are stored, to the other forms of a
// response: indented JSON, YAML and CBOR; and bodies in YAML to JSON. Lists are converted while
// they are written. It negotiates nothing.
package layout

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/patches"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
)

// Layout converts compact JSON.
type Layout interface {
	// Object appends an object as a complete response.
	Object(dst, plain []byte) ([]byte, error)
	// Begin appends the begin of a list. head is everything before its first item: it ends with
	// the opening bracket of the items, which are the last member.
	Begin(dst, head []byte) ([]byte, error)
	Item(dst, item []byte, first bool) ([]byte, error)
	End(dst []byte, empty bool) []byte
}

// Pretty is indented JSON.
type Pretty struct{}

// Object implements Layout.
func (Pretty) Object(dst, plain []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	err := json.Indent(out, plain, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}

// Begin implements Layout.
func (Pretty) Begin(dst, head []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	err := json.Indent(out, append(head, "]}"...), "", "  ")
	return out.Bytes()[:bytes.LastIndexByte(out.Bytes(), '[')+1], err
}

// Item implements Layout.
func (Pretty) Item(dst, item []byte, first bool) ([]byte, error) {
	if !first {
		dst = append(dst, ',')
	}
	out := bytes.NewBuffer(append(dst, "\n    "...))
	err := json.Indent(out, item, "    ", "  ")
	return out.Bytes(), err
}

// End implements Layout.
func (Pretty) End(dst []byte, empty bool) []byte {
	if !empty {
		dst = append(dst, "\n  "...)
	}
	return append(dst, "]\n}\n"...)
}

// YAML is that encoding.
type YAML struct{}

// Object implements Layout.
func (YAML) Object(dst, plain []byte) ([]byte, error) {
	converted, err := yaml.JSONToYAML(plain)
	return append(dst, converted...), err
}

// Begin implements Layout.
func (YAML) Begin(dst, head []byte) ([]byte, error) {
	cut := bytes.LastIndexByte(head, ',')
	name := bytes.Trim(head[cut+1:], `":[`)
	converted, err := yaml.JSONToYAML(append(bytes.Clone(head[:cut]), '}'))
	dst = append(append(dst, converted...), name...)
	return append(dst, ':'), err
}

// Item implements Layout.
func (YAML) Item(dst, item []byte, first bool) ([]byte, error) {
	if first {
		dst = append(dst, '\n')
	}
	converted, err := yaml.JSONToYAML(item)
	indent := "- "
	for line := range bytes.Lines(converted) {
		dst = append(append(dst, indent...), line...)
		indent = "  "
	}
	return dst, err
}

// End implements Layout.
func (YAML) End(dst []byte, empty bool) []byte {
	if empty {
		return append(dst, " []\n"...)
	}
	return dst
}

// CBOR is that encoding.
type CBOR struct{}

// Object implements Layout.
func (CBOR) Object(dst, plain []byte) ([]byte, error) { return cbor.Append(dst, plain) }

// Begin implements Layout.
func (CBOR) Begin(dst, head []byte) ([]byte, error) { return cbor.AppendListHead(dst, head) }

// Item implements Layout.
func (CBOR) Item(dst, item []byte, _ bool) ([]byte, error) { return cbor.AppendItem(dst, item) }

// End implements Layout.
func (CBOR) End(dst []byte, _ bool) []byte { return cbor.AppendListEnd(dst) }

// FromYAML converts YAML to JSON. strict has the errors of a strict decoder.
func FromYAML(body []byte) (converted []byte, strict []string, err error) {
	plain := json.Valid(body)
	converted, strictly := yaml.YAMLToJSONStrict(body)
	switch {
	case plain: // its numbers stay as they are
		converted = body
	case strictly != nil:
		if converted, err = yaml.YAMLToJSON(body); err != nil {
			return nil, nil, fmt.Errorf("yaml parse error: %w", err)
		}
	}
	return converted, patches.DuplicateKeys(strictly), nil
}
