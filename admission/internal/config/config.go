// Package config reads the file of --admission-control-config-file: an AdmissionConfiguration with a document
// for each plugin that reads one, in the file itself or in a separate file. It is strict: a file that cannot be
// read, a field that is not known, and a value of a wrong type are errors that name the file and the field.
// What a document means is up to its plugin. It serves "Admission plugins" of the specification.
package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

// maxFile is the limit on the size of one file, in bytes.
const maxFile = 4 << 20

// Document is the configuration of one plugin.
type Document struct {
	// Plugin is the name of the plugin.
	Plugin string
	// Folder is where relative paths in the document start.
	Folder string
	// Given is false for a plugin that the file only names.
	Given bool

	named       string // where the file names the plugin
	file, field string // where the document is; field is empty for a whole file
	json        []byte
	vocabulary  vocabulary.Vocabulary
}

// legacy are the plugins whose documents may be in the place of an
// AdmissionConfiguration, by the field that gives them away.
func legacy() map[string]string {
	return map[string]string{"imagePolicy": "ImagePolicyWebhook", "podNodeSelectorPluginConfig": "PodNodeSelector"}
}

// Read reads an AdmissionConfiguration, and the files that it names. A plugin is in the
// result at most once.
func Read(path string, v vocabulary.Vocabulary) ([]Document, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, content, v)
}

func parse(path string, content []byte, v vocabulary.Vocabulary) ([]Document, error) {
	whole := Document{named: path, file: path, Folder: filepath.Dir(path), Given: true, vocabulary: v}
	var err error
	if whole.json, err = toJSON(content); err != nil {
		return nil, whole.wrap(err)
	}
	if documents := whole.legacyDocuments(); documents != nil {
		return documents, nil
	}
	var file struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Plugins    []struct {
			Name          string          `json:"name"`
			Path          string          `json:"path"`
			Configuration json.RawMessage `json:"configuration"`
		} `json:"plugins"`
	}
	if err := whole.DecodeVersion(&file, Version{"apiserver.config.", "v1", "AdmissionConfiguration"}, Version{"apiserver.", "v1alpha1", "AdmissionConfiguration"}); err != nil {
		return nil, err
	}
	var documents []Document
	seen := map[string]bool{}
	for i, p := range file.Plugins {
		field := fmt.Sprintf("plugins[%d]", i)
		if p.Name == "" || seen[p.Name] {
			return nil, whole.Invalid(field+".name", "plugin %q is named more than once", p.Name)
		}
		seen[p.Name] = true
		d := Document{Plugin: p.Name, Folder: whole.Folder, file: path, field: field + ".configuration", vocabulary: v,
			named: path + ": " + field + ".name"}
		switch inline := p.Configuration; {
		case len(inline) > 0 && string(inline) != "null":
			d.json, d.Given = inline, true
		case p.Path != "":
			if d, err = d.fromFile(p.Path); err != nil {
				return nil, fmt.Errorf("%s: %s.path: %w", path, field, err)
			}
		}
		documents = append(documents, d)
	}
	return documents, nil
}

// legacyDocuments returns the documents of a file in the form of before there was an
// AdmissionConfiguration; nil when it is not one.
func (d Document) legacyDocuments() (documents []Document) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(d.json, &fields) != nil || fields["apiVersion"] != nil || fields["kind"] != nil {
		return nil
	}
	for field, plugin := range legacy() {
		if content, ok := fields[field]; ok {
			of := d
			of.Plugin = plugin
			of.json, _ = json.Marshal(map[string]json.RawMessage{field: content})
			documents = append(documents, of)
			delete(fields, field)
		}
	}
	if len(fields) > 0 {
		return nil // then the error is about the missing apiVersion
	}
	return documents
}

// fromFile returns the document with the content of a separate file.
func (d Document) fromFile(path string) (Document, error) {
	path = d.Path(path)
	content, err := readFile(path)
	if err != nil {
		return d, err
	}
	d.file, d.field, d.Folder, d.Given = path, "", filepath.Dir(path), true
	if d.json, err = toJSON(content); err != nil {
		return d, d.wrap(err)
	}
	return d, nil
}

// Path returns a path in the document as an absolute one, or one from the working
// directory.
func (d Document) Path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.Folder, path)
}

// Vocabulary is the vocabulary of the document's names.
func (d Document) Vocabulary() vocabulary.Vocabulary { return d.vocabulary }

// Decode reads the document. Fields that into does not have are errors.
func (d Document) Decode(into any) error {
	strict, err := kjson.UnmarshalStrict(d.json, into)
	if err == nil {
		err = errors.Join(strict...)
	}
	return d.wrap(err)
}

// Version is a kind of documents. Its group is in the short form of package vocabulary.
type Version struct{ Group, Version, Kind string }

// DecodeVersion reads a document that has an apiVersion and a kind, which have to be one
// of some.
func (d Document) DecodeVersion(into any, known ...Version) error {
	var is struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(d.json, &is); err != nil {
		return d.wrap(err)
	}
	for _, k := range known {
		if is.APIVersion == d.vocabulary.Group(k.Group)+"/"+k.Version && is.Kind == k.Kind {
			return d.Decode(into)
		}
	}
	first := known[0]
	return d.Invalid("apiVersion", "kind %q of %q is not known here; use %s of %s/%s", is.Kind, is.APIVersion,
		first.Kind, d.vocabulary.Group(first.Group), first.Version)
}

// Invalid returns an error about a field of the document.
func (d Document) Invalid(field, format string, args ...any) error {
	return d.wrap(fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

// Unusable returns an error about the plugin that the document is for.
func (d Document) Unusable(format string, args ...any) error {
	return fmt.Errorf("%s: %s", d.named, fmt.Sprintf(format, args...))
}

// wrap adds to an error where the document is.
func (d Document) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case d.field == "":
		return fmt.Errorf("%s: %w", d.file, err)
	}
	return fmt.Errorf("%s: %s: %w", d.file, d.field, err)
}

// readFile reads a file, which must not be larger than maxFile.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the operator's own flag names it
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s: it is larger than %d bytes", path, maxFile)
	}
	return content, nil
}

// toJSON converts YAML or JSON of one document, in which no field is set twice.
func toJSON(content []byte) ([]byte, error) {
	documents := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	first, err := documents.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if second, err := documents.Read(); err == nil && len(bytes.TrimSpace(second)) > 0 {
		return nil, errors.New("it has more than one document")
	}
	return yaml.YAMLToJSONStrict(first)
}
