package crd

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/selectable"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/structural"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/validations"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/tree"
)

// versions validates all versions, and that exactly one is the storage version.
func (c *check) versions() {
	where := at("versions")
	versions := children(c.spec, "versions")
	keepAll := c.keepsAll()
	stored := 0
	for i, version := range versions {
		name, below := tree.Text(version, "name"), where.Item(i)
		c.label(below.Field("name"), name)
		if version["storage"] == true {
			stored++
		}
		c.missing(version, keepAll, below.Field("schema").Field("openAPIV3Schema"))
		c.schemaOf(version, keepAll, below.Field("schema").Field("openAPIV3Schema"))
		c.deprecation(version, below)
		c.columnsAndScale(version, below)
	}
	if names := namesIn(versions); len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) {
		c.Invalid(where, names, "must contain unique version names")
	}
	if stored != 1 {
		c.Invalid(where, namesIn(versions), "must have exactly one version marked as storage version")
	}
	switch version := tree.Text(c.spec, "version"); {
	case version == "":
	case len(validation.IsDNS1035Label(version)) > 0:
		c.label(at("version"), version)
	case len(versions) > 0 && tree.Text(versions[0], "name") != version:
		c.Invalid(at("version"), version, "must match the first version in spec.versions")
	}
	c.schemaOf(map[string]any{"schema": c.spec["validation"], "subresources": c.anyStatus()}, keepAll, at("validation", "openAPIV3Schema"))
	c.columnsAndScale(c.spec, at())
	c.selectable(versions)
	c.onceOnly(versions)
}

// selectable validates the selectable fields of all versions, as one list if they are the
// same.
func (c *check) selectable(versions []map[string]any) {
	if !isLater(c.Types) || len(versions) == 0 {
		return
	}
	validate := func(version, schema map[string]any, where *field.Path, why string) {
		paths, raw := selectable.Paths(version), tree.Child(schema, "openAPIV3Schema")
		if len(paths) > 0 && raw == nil {
			c.Invalid(where.Field("selectableFields"), "", why)
			return
		}
		selectable.Check(paths, raw, where.Field("selectableFields"), &c.Errors)
	}
	first := selectable.Paths(versions[0])
	if !slices.ContainsFunc(versions, func(v map[string]any) bool { return !slices.Equal(selectable.Paths(v), first) }) {
		validate(versions[0], tree.Child(c.spec, "validation"), at(), "may only be set when validations.schema is included")
		return
	}
	for i, version := range versions {
		validate(version, tree.Child(version, "schema"), at("versions").Item(i), "may only be set when `version.schema.openAPIV3Schema` is not included")
	}
}

// keepsAll reports whether objects keep unknown fields, which only old definitions may
// specify.
func (c *check) keepsAll() bool {
	if c.spec["preserveUnknownFields"] != true {
		return false
	}
	if c.isV1 && c.oldSpec["preserveUnknownFields"] != true {
		c.Invalid(at("preserveUnknownFields"), true, "cannot set to true, set "+c.Vocabulary.Extension+"preserve-unknown-fields to true in spec.versions[*].schema instead")
	}
	return true
}

func namesIn(versions []map[string]any) []string {
	names := make([]string, len(versions))
	for i, version := range versions {
		names[i] = tree.Text(version, "name")
	}
	return names
}

// onceOnly checks that fields common to all versions are not also set per version.
func (c *check) onceOnly(versions []map[string]any) {
	for shared, own := range map[string]string{"validation": "schema", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns"} {
		hasOwn := slices.ContainsFunc(versions, func(version map[string]any) bool { return version[own] != nil })
		if hasOwn && c.spec[shared] != nil {
			c.Forbidden(at(shared), "top-level and per-version "+strings.Replace(own, "schema", "schemas", 1)+" are mutually exclusive")
		}
	}
}

// anyStatus returns the subresources of some version with a status, nil if there is none:
// the common schema must be valid for all versions.
func (c *check) anyStatus() any {
	for _, holder := range append(children(c.spec, "versions"), c.spec) {
		if tree.Child(tree.Child(holder, "subresources"), "status") != nil {
			return holder["subresources"]
		}
	}
	return nil
}

// missing checks that a schema is specified for the version or for all versions.
func (c *check) missing(version map[string]any, keepAll bool, where *field.Path) {
	has := func(holder map[string]any, name string) bool {
		return tree.Child(tree.Child(holder, name), "openAPIV3Schema") != nil
	}
	if has(version, "schema") || has(c.spec, "validation") || version["served"] != true && c.relaxed.schemas {
		return
	}
	switch {
	case !c.relaxed.schemas && isLater(c.Types):
		c.Required(where, "")
	case !c.relaxed.schemas:
		c.Required(where, "schemas are required")
	case !keepAll:
		c.Required(where, "because otherwise all fields are pruned")
	}
}

// schemaOf validates the schema of a version, or the common one: first that it is
// structural, and then its defaults.
func (c *check) schemaOf(holder map[string]any, keepAll bool, where *field.Path) {
	raw := tree.Child(tree.Child(holder, "schema"), "openAPIV3Schema")
	if raw == nil {
		return
	}
	found := structural.Schemas{Extension: c.Vocabulary.Extension}
	defaults := hasDefault(raw)
	if keepAll && defaults {
		c.Invalid(at("preserveUnknownFields"), true, "must be false in order to use defaults in the schema")
	}
	if keepAll && c.relaxed.structure && !defaults && !found.IsExtended(raw) {
		found.CheckKeywords(raw, where)
	} else {
		found.Check(raw, where)
	}
	if tree.Child(tree.Child(holder, "subresources"), "status") != nil {
		found.CheckBesideStatus(raw, where)
	}
	if found.IsStructural() {
		c.defaults(raw, where, &found.Errors)
	}
	c.validations(raw, where, &found)
	c.Join(&found.Errors)
	c.Join(found.Others())
}

// defaults validates the defaults of a structural schema: by their schemas and, if they fit, by the rules of these.
func (c *check) defaults(raw map[string]any, root *field.Path, errs *field.Errors) {
	reader := schemas{vocabulary: c.Vocabulary}
	rules := validations.Defaults{Extension: c.Vocabulary.Extension}
	structural.Each(raw, root, func(s map[string]any, where *field.Path) {
		isRoot := where == root
		if isRoot { // the default of a whole object has its apiVersion and kind
			s = maps.Clone(s)
			s[c.Vocabulary.Extension+"embedded-resource"] = true
		}
		at := where.Field("default")
		switch {
		case s["default"] == nil:
		case !c.relaxed.defaults:
			errs.Forbidden(at, "must not be set in "+tree.Text(c.object, "apiVersion")+" CustomResourceDefinitions")
		case ofMap(where): // Kubernetes does not look there
		default:
			if c.Schemas.CheckDefault(reader.schema(s), at, errs) && isLater(c.Types) {
				errs.Add(rules.Check(s, isRoot, at.String())...)
			}
		}
	})
}

// validations validates the validation rules of a schema.
func (c *check) validations(raw map[string]any, where *field.Path, found *structural.Schemas) {
	if !isLater(c.Types) || !validations.Has(raw, c.Vocabulary.Extension) {
		return
	}
	d := validations.Definition{Extension: c.Vocabulary.Extension, Environment: c.Expressions.Base(), Malformed: !found.IsStructural(), Refused: found.Faulty()}
	for _, version := range children(tree.Child(asV1(c.old, c.Vocabulary), "spec"), "versions") {
		stored := tree.Child(tree.Child(version, "schema"), "openAPIV3Schema")
		d.Stored = append(d.Stored, stored)
		d.Unchanged = d.Unchanged || tree.Equal(stored, raw)
	}
	c.Add(validations.Check(raw, where.String(), d)...)
}

func hasDefault(s map[string]any) (found bool) {
	structural.Each(s, nil, func(s map[string]any, _ *field.Path) { found = found || s["default"] != nil })
	return found
}

// maxWarning limits deprecationWarning, in bytes.
const maxWarning = 256

func (c *check) deprecation(version map[string]any, where *field.Path) {
	warning, given := version["deprecationWarning"].(string)
	if !given {
		return
	}
	where = where.Field("deprecationWarning")
	switch {
	case version["deprecated"] != true:
		c.Invalid(where, warning, "can only be set for deprecated versions")
	case warning == "":
		c.Invalid(where, warning, "must not be an empty string")
	case len(warning) > maxWarning:
		c.Invalid(where, warning, "must be <= 256 characters long")
	case !utf8.ValidString(warning) || strings.ContainsFunc(warning, func(r rune) bool { return !unicode.IsPrint(r) }):
		c.Invalid(where, warning, "must only contain printable UTF-8 characters")
	}
}

// columnTypes and columnFormats are the valid types and formats of columns.
var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

// columnsAndScale validates the columns and the scale of a version, or the common ones.
func (c *check) columnsAndScale(holder map[string]any, where *field.Path) {
	for i, column := range children(holder, "additionalPrinterColumns") {
		below := where.Field("additionalPrinterColumns").Item(i)
		if tree.Text(column, "name") == "" {
			c.Required(below.Field("name"), "")
		}
		if kind := tree.Text(column, "type"); kind == "" {
			c.Required(below.Field("type"), "must be one of "+strings.Join(columnTypes, ","))
		} else if !slices.Contains(columnTypes, kind) {
			c.Invalid(below.Field("type"), kind, "must be one of "+strings.Join(columnTypes, ","))
		}
		if format := tree.Text(column, "format"); format != "" && !slices.Contains(columnFormats, format) {
			c.Invalid(below.Field("format"), format, "must be one of "+strings.Join(columnFormats, ","))
		}
		if c.path(tree.Text(column, "JSONPath"), below.Field("JSONPath")); tree.Text(column, "JSONPath") == "" {
			c.Required(below.Field("JSONPath"), "")
		}
	}
	c.scale(tree.Child(tree.Child(holder, "subresources"), "scale"), where.Field("subresources").Field("scale"))
}

// path validates a path of plain names. It reports whether the path is valid and not empty.
func (c *check) path(path string, where *field.Path) bool {
	if path != "" && !strings.HasPrefix(path, ".") {
		c.Invalid(where, path, "must be a simple json path starting with .")
		return false
	}
	return path != ""
}

// scale validates the paths of a scale.
func (c *check) scale(s map[string]any, where *field.Path) {
	if s == nil {
		return
	}
	for _, p := range []struct {
		name     string
		required bool
		below    []string
		hint     string
	}{
		{"specReplicasPath", true, []string{".spec."}, ".spec"},
		{"statusReplicasPath", true, []string{".status."}, ".status"},
		{"labelSelectorPath", false, []string{".spec.", ".status."}, "either .spec or .status"},
	} {
		path := tree.Text(s, p.name)
		if path == "" && p.required {
			c.Required(where.Field(p.name), "")
		}
		starts := slices.ContainsFunc(p.below, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		if c.path(path, where.Field(p.name)) && !starts {
			c.Invalid(where.Field(p.name), path, "should be a json path under "+p.hint)
		}
	}
}

// ofMap reports whether a schema is that of the values of a map, or below one.
func ofMap(where *field.Path) bool {
	for ; where != nil; where = where.Parent {
		if where.Name == "additionalProperties" && !where.IsKey {
			return true
		}
	}
	return false
}
