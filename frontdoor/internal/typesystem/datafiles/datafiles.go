// Package datafiles holds data of the front door that is written as YAML in a form that is
// decoded quickly. A generator packs YAML files into one file, which is embedded: each line
// has the path of a file and its content as JSON. Parsing YAML takes ten times as long, and
// every start would do it.
package datafiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Pack returns the files of a folder that match the patterns, in their order. An error is a
// mistake in a file, such as a repeated key.
func Pack(folder fs.FS, patterns ...string) ([]byte, error) {
	var packed bytes.Buffer
	encoder := json.NewEncoder(&packed)
	encoder.SetEscapeHTML(false) // package bootstrap has names in angle brackets
	for _, pattern := range patterns {
		paths, err := fs.Glob(folder, pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := fs.ReadFile(folder, path)
			if err != nil {
				return nil, err
			}
			parsed, err := parse(content)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			packed.WriteString(path + " ")
			if err := encoder.Encode(parsed); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return packed.Bytes(), nil
}

// parse returns the content of a YAML file. Numbers are kept as they are written.
func parse(content []byte) (parsed any, err error) {
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	return parsed, decoder.Decode(&parsed)
}

// Files returns the paths and the contents of packed files.
func Files(packed string) iter.Seq2[string, string] {
	return func(yield func(path, content string) bool) {
		for line := range strings.Lines(packed) {
			if path, content, _ := strings.Cut(line, " "); !yield(path, content) {
				return
			}
		}
	}
}

// Decode decodes the content of a file. Unknown keys are errors; integers become int64, as in
// objects.
func Decode(content string, into any) error {
	strict, err := kjson.UnmarshalStrict([]byte(content), into, kjson.DisallowUnknownFields)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	return err
}
