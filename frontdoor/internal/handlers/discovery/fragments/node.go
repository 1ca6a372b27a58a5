package fragments

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/gnostic-models/compiler"
	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"go.yaml.in/yaml/v3"
)

// parse returns a document in JSON as a message. It is openapi_v2.ParseDocument for JSON, which that function reads as
// YAML: that takes most of its time.
func parse(document []byte) (*openapi_v2.Document, error) {
	root, err := rootOf(document)
	if err != nil {
		return nil, err
	}
	return openapi_v2.NewDocument(root, compiler.NewContextWithExtensions("$root", root, nil, nil))
}

// rootOf reads a value in JSON.
func rootOf(encoded []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	return node(d)
}

// node reads a value as the parser of YAML does.
func node(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch value := token.(type) {
	case json.Delim:
		of := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		if value == '{' {
			of.Kind, of.Tag = yaml.MappingNode, "!!map"
		}
		for d.More() {
			below, err := node(d) // the names of members are values, too
			if err != nil {
				return nil, err
			}
			of.Content = append(of.Content, below)
		}
		_, err := d.Token()
		return of, err
	case string:
		return scalar("!!str", value, yaml.DoubleQuotedStyle), nil
	case json.Number:
		if bytes.ContainsAny([]byte(value), ".eE") {
			return scalar("!!float", value.String(), 0), nil
		}
		return scalar("!!int", value.String(), 0), nil
	case bool:
		return scalar("!!bool", fmt.Sprint(value), 0), nil
	default:
		return scalar("!!null", "null", 0), nil
	}
}

func scalar(tag, value string, style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Style: style}
}
