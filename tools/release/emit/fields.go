//go:build generated

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// podSpec is the definition whose fields are listed once for all kinds with pods.
const podSpec = "io.k8s.api.core.v1.PodSpec"

// walker collects the paths of gated fields.
type walker struct {
	definitions map[string]spec.Schema
	gated       gates
	found       map[string]map[string][]string // by gate and kind
}

// writeFields writes the paths of gated fields by gate and kind.
func writeFields(file string, definitions map[string]spec.Schema, types []*resource, gated gates) error {
	w := walker{definitions, gated, map[string]map[string][]string{}}
	w.walk("<pod spec>", podSpec, "", nil)
	for _, t := range types {
		w.walk(t.kind, t.definition, "", nil)
	}
	for _, kinds := range w.found {
		for kind, paths := range kinds {
			slices.Sort(paths)
			kinds[kind] = slices.Compact(paths)
		}
	}
	var content bytes.Buffer
	e := json.NewEncoder(&content)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(w.found); err != nil {
		return err
	}
	return os.WriteFile(file, content.Bytes(), 0o644)
}

// walk collects the gated fields of a definition and of all below it. Recursive ones are
// not followed.
func (w walker) walk(kind, definition, path string, above []string) {
	if slices.Contains(above, definition) || definition == podSpec && len(above) > 0 {
		return
	}
	above = append(slices.Clip(above), definition)
	for name, p := range w.definitions[definition].Properties {
		for _, gate := range w.gated[definition][name] {
			if w.found[gate] == nil {
				w.found[gate] = map[string][]string{}
			}
			w.found[gate][kind] = append(w.found[gate][kind], path+name)
		}
		w.value(kind, p, path+name, above)
	}
}

func (w walker) value(kind string, s spec.Schema, path string, above []string) {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		w.value(kind, *s.Items.Schema, path+"[]", above)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		w.value(kind, *s.AdditionalProperties.Schema, path+"{}", above)
	default:
		if name, ok := strings.CutPrefix(s.Ref.String(), pointer); ok {
			w.walk(kind, name, path+".", above)
		}
	}
}
