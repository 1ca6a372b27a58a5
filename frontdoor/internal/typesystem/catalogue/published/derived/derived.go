// Package derived makes the definitions of a version of an API group from those of another
// version. It serves "Stability levels" of the specification.
package derived

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Version is a version whose definitions are those of the version Like, but for some that
// exist already.
type Version struct{ Name, Like string }

var reference = regexp.MustCompile(`"#/definitions/([^"]+)"`)

// Add adds a definition of the version, and those of the same API that it refers to. An
// error means that there is nothing to make one of them from.
func (v Version) Add(definitions map[string]*spec.Schema, name string) error {
	schema, made := definitions[name], &spec.Schema{}
	if schema == nil {
		schema = definitions[strings.Replace(name, "."+v.Name+".", "."+v.Like+".", 1)]
	}
	if schema == nil {
		return fmt.Errorf("there is no definition like %s", name)
	}
	content, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(content), v.Like, v.Name)
	if err := json.Unmarshal([]byte(text), made); err != nil {
		return err
	}
	definitions[name] = made
	api := name[:strings.LastIndex(name, ".")+1]
	for _, found := range reference.FindAllStringSubmatch(text, -1) {
		if needed := found[1]; strings.HasPrefix(needed, api) && needed != name {
			if err := v.Add(definitions, needed); err != nil {
				return err
			}
		}
	}
	return nil
}
