// Package selectable reads the selectable fields of a version of a CustomResourceDefinition:
// the fields that field selectors of requests for its objects support. It serves
// "Query parameters" of the specification, for custom types.
package selectable

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/tree"
)

// maxFields limits the selectable fields of a version.
const maxFields = 8

// Paths returns the JSON paths of a version's selectable fields, and "" for an item that has
// none.
func Paths(version map[string]any) []string {
	list := tree.List(version, "selectableFields")
	paths := make([]string, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		paths[i] = tree.Text(m, "jsonPath")
	}
	return paths
}

// Fields returns the selectable fields of a version. It skips paths that Check refuses.
func Fields(version map[string]any) (fields []catalogue.SelectableField) {
	for _, path := range Paths(version) {
		name, ok := strings.CutPrefix(path, ".")
		if !ok || strings.ContainsAny(name, "[]") || strings.HasPrefix(name, "metadata.") || len(fields) == maxFields {
			continue
		}
		fields = append(fields, catalogue.SelectableField{Name: name, Path: strings.Split(name, ".")})
	}
	return fields
}

// Extension returns the value of the extension of a published schema that names the fields;
// nil for none.
func Extension(fields []catalogue.SelectableField) any {
	if len(fields) == 0 {
		return nil
	}
	list := make([]any, len(fields))
	for i, f := range fields {
		list[i] = map[string]any{"fieldPath": f.Name}
	}
	return list
}

// Check adds the errors of selectable fields to errs. schema is that of the objects.
func Check(paths []string, schema map[string]any, where *field.Path, errs *field.Errors) {
	seen := map[string]bool{}
	for i, path := range paths {
		below := where.Item(i).Field("jsonPath")
		if path == "" {
			errs.Required(below, "")
			continue
		}
		found, fault := resolve(path, schema)
		if fault != "" {
			errs.Invalid(below, path, "is an invalid path: "+fault)
			continue
		}
		if first, _, _ := strings.Cut(path[1:], "."); first == "metadata" {
			errs.Invalid(below, path, "must not point to fields in metadata")
		}
		switch tree.Text(found, "type") {
		case "string", "boolean", "integer":
		default:
			errs.Invalid(below, path, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.")
		}
		if seen[path] {
			errs.Duplicate(below, path)
		}
		seen[path] = true
	}
	if len(seen) > maxFields {
		errs.TooMany(where, len(seen), maxFields)
	}
}

// resolve returns the schema at a path of fields and map keys, or why there is none.
func resolve(path string, schema map[string]any) (found map[string]any, fault string) {
	for found = schema; path != ""; {
		if path[0] == '[' {
			return nil, "array notation is not allowed"
		}
		if path[0] != '.' {
			return nil, "expected [ or . but got: " + token(path)
		}
		name := token(path[1:])
		if name == "" {
			return nil, "unexpected end of JSON path"
		}
		if strings.ContainsAny(name, ".[]") {
			return nil, "does not refer to a valid field"
		}
		path = path[1+len(name):]
		if properties := tree.Child(found, "properties"); len(properties) > 0 {
			found = tree.Child(properties, name)
		} else {
			found = tree.Child(found, "additionalProperties")
		}
		if found == nil {
			return nil, "does not refer to a valid field"
		}
	}
	return found, ""
}

// token returns the start of a path: one of the delimiters, or all up to the next of them.
func token(path string) string {
	switch at := strings.IndexAny(path, ".[]"); {
	case at < 0:
		return path
	case at == 0:
		return path[:1]
	default:
		return path[:at]
	}
}
