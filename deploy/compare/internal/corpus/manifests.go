package corpus

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/portico-platform/portico/deploy/compare/internal/openapi"
)

//go:embed manifests/*.yaml requests/*.yaml
var files embed.FS

// manifests reads the hand-written manifests by kind: the first of a kind is its minimal
// one, the second its full one.
func manifests() (map[openapi.Kind][]object, error) {
	all := map[openapi.Kind][]object{}
	err := documents("manifests", func(name string, o object) error {
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

// documents calls a function with each YAML document of the files in a folder.
func documents(folder string, use func(name string, o object) error) error {
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
			var o object
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

// setManifests sets the manifests of a kind: the hand-written ones, or one generated from
// its required fields.
func (w *walker) setManifests(k *Kind, written []object) {
	apiVersion := k.Version
	if k.Group != "" {
		apiVersion = k.Group + "/" + k.Version
	}
	if len(written) > 0 {
		k.minimal = written[0]
		if len(written) > 1 {
			k.full = written[1]
		}
		return
	}
	k.minimal, _ = w.sample("", w.portico.Of(k.Kind)).(object)
	if k.minimal == nil {
		k.minimal = object{}
	}
	k.minimal["apiVersion"], k.minimal["kind"] = apiVersion, k.Kind.Kind
	child(k.minimal, "metadata")
}
