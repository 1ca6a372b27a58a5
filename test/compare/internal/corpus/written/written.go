// Package written has the part of the corpus that is written by hand: manifests of kinds whose
// required fields alone are not a valid object, and requests of single kinds. It sends nothing
// and does not know which kinds the servers serve.
package written

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

//go:embed manifests/*.yaml requests/*.yaml
var files embed.FS

// Case is a case in a file of requests/.
type Case struct {
	Name string
	Kind openapi.Kind
	// Base precedes the paths of the steps.
	Base  string
	Steps []Step
}

// Step is one request of a case.
type Step struct {
	Name, Method, Path, Query, Accept, Type, Text string
	Body                                          map[string]any
}

// Manifests returns the manifests by kind: the first of a kind is its minimal one, the second
// its full one.
func Manifests() (map[openapi.Kind][]map[string]any, error) {
	all := map[openapi.Kind][]map[string]any{}
	err := readFiles("manifests", func(name string, o map[string]any) error {
		apiVersion, _ := o["apiVersion"].(string)
		kind, _ := o["kind"].(string)
		if apiVersion == "" || kind == "" {
			return fmt.Errorf("%s: a manifest without apiVersion or kind", name)
		}
		k := openapi.Kind{Version: apiVersion, Kind: kind}
		for i := range apiVersion {
			if apiVersion[i] == '/' {
				k.Group, k.Version = apiVersion[:i], apiVersion[i+1:]
			}
		}
		all[k] = append(all[k], o)
		return nil
	})
	return all, err
}

// Cases returns the cases of all kinds.
func Cases() (all []Case, err error) {
	err = readFiles("requests", func(file string, o map[string]any) error {
		content, err := json.Marshal(o)
		if err != nil {
			return err
		}
		var c Case
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if c.Name == "" || len(c.Steps) == 0 {
			return fmt.Errorf("%s: a case without a name or steps", file)
		}
		all = append(all, c)
		return nil
	})
	return all, err
}

// readFiles calls a function with each YAML document of the files in a folder.
func readFiles(folder string, use func(name string, o map[string]any) error) error {
	names, err := fs.Glob(files, folder+"/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			var o map[string]any
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if o == nil {
				continue
			}
			if err := use(name, o); err != nil {
				return err
			}
		}
	}
	return nil
}
