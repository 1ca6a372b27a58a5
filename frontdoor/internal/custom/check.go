package custom

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	"github.com/portico-platform/portico/frontdoor/internal/schema"
	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// check is one look at a definition.
type check struct {
	field.Errors
	vocabulary vocabulary.Vocabulary
	schemas    *schema.Engine
	// spec and status in version v1, and those of before; nil at a create.
	spec, oldSpec     map[string]any
	status, oldStatus map[string]any
}

// Check returns nil or a Status (422) with everything that is wrong with a
// definition, in any version, beyond what the document says of its fields. The old
// one is nil for a create. The engine is asked whether defaults are valid.
func Check(object, old map[string]any, schemas *schema.Engine, v vocabulary.Vocabulary) error {
	v1, before := asV1(object, v), asV1(old, v)
	c := &check{vocabulary: v, schemas: schemas, spec: child(v1, "spec"), oldSpec: child(before, "spec"),
		status: child(v1, "status"), oldStatus: child(before, "status")}
	meta := child(object, "metadata")
	c.group(meta, old == nil)
	c.names()
	c.versions(strings.HasSuffix(text(object, "apiVersion"), "/v1"))
	c.conversion()
	if old != nil {
		c.fixed()
	}
	causes := c.Causes()
	if len(causes) == 0 {
		return nil
	}
	return services.Invalid(v.Group("apiextensions."), "CustomResourceDefinition", text(meta, "name"), causes)
}

// at is a path below spec.
func at(names ...string) *field.Path {
	path := &field.Path{Name: "spec"}
	for _, name := range names {
		path = path.Field(name)
	}
	return path
}

// group checks the group, and the object's name, which follows from it.
func (c *check) group(meta map[string]any, isNew bool) {
	group := text(c.spec, "group")
	switch problems := validation.IsDNS1123Subdomain(group); {
	case group == "":
		c.Required(at("group"), "")
	case len(problems) > 0:
		c.Invalid(at("group"), group, strings.Join(problems, ","))
	case !strings.Contains(group, "."):
		c.Invalid(at("group"), group, "should be a domain with at least one dot")
	}
	if name := text(meta, "name"); name != text(child(c.spec, "names"), "plural")+"."+group {
		c.Invalid((&field.Path{Name: "metadata"}).Field("name"), name, `must be spec.names.plural+"."+spec.group`)
	}
	switch scope := text(c.spec, "scope"); scope {
	case "":
		c.Required(at("scope"), "")
	case "Cluster", "Namespaced":
	default:
		c.NotSupported(at("scope"), scope, "Cluster", "Namespaced")
	}
	approval := "api-approved." + c.vocabulary.Domain
	if isNew && c.isProtected(group) && text(child(meta, "annotations"), approval) == "" {
		c.Required((&field.Path{Name: "metadata"}).Field("annotations").Entry(approval), "protected groups must have approval annotation")
	}
}

// isProtected tells whether a group is one of the maker's.
func (c *check) isProtected(group string) bool {
	return c.vocabulary.ShortGroup(group) != group || strings.HasSuffix(group, "."+c.vocabulary.Domain)
}

// names checks what the types are called.
func (c *check) names() {
	names := child(c.spec, "names")
	n := namesOf(names).completed()
	where := at("names")
	for name, value := range map[string]string{"plural": n.Plural, "singular": n.Singular} {
		if value == "" {
			c.Required(where.Field(name), "")
		} else {
			c.label(where.Field(name), value, "")
		}
	}
	for name, value := range map[string]string{"kind": n.Kind, "listKind": n.ListKind} {
		if value == "" {
			c.Required(where.Field(name), "")
		} else {
			c.label(where.Field(name), strings.ToLower(value), "may have mixed case, but should otherwise match: ")
		}
	}
	if n.Kind != "" && n.Kind == n.ListKind {
		c.Invalid(where.Field("listKind"), n.ListKind, "kind and listKind may not be the same")
	}
	for name, values := range map[string][]string{"shortNames": n.ShortNames, "categories": n.Categories} {
		for i, value := range values {
			c.label(where.Field(name).Item(i), value, "")
		}
	}
}

func (c *check) label(where *field.Path, value, hint string) {
	if problems := validation.IsDNS1035Label(value); len(problems) > 0 {
		c.Invalid(where, value, hint+strings.Join(problems, ","))
	}
}

// versions checks all versions, and that one of them is stored.
func (c *check) versions(isV1 bool) {
	where := at("versions")
	keepAll := c.spec["preserveUnknownFields"] == true
	if keepAll && isV1 && c.oldSpec["preserveUnknownFields"] != true {
		c.Invalid(at("preserveUnknownFields"), true, "must be false")
	}
	versions := children(c.spec, "versions")
	stored := 0
	seen := map[string]bool{}
	for i, version := range versions {
		name := text(version, "name")
		c.label(where.Item(i).Field("name"), name, "")
		if seen[name] {
			c.Duplicate(where.Item(i).Field("name"), name)
		}
		seen[name] = true
		if version["storage"] == true {
			stored++
		}
		c.version(version, keepAll, where.Item(i))
	}
	if stored != 1 {
		c.Invalid(where, slices.Sorted(maps.Keys(seen)), "must have exactly one version marked as storage version")
	}
	for i, name := range texts(c.status, "storedVersions") {
		if !seen[name] {
			c.Invalid((&field.Path{Name: "status"}).Field("storedVersions").Item(i), name, "must appear in spec.versions")
		}
	}
}

// version checks one version.
func (c *check) version(version map[string]any, keepAll bool, where *field.Path) {
	raw := child(child(version, "schema"), "openAPIV3Schema")
	switch inSchema := where.Field("schema").Field("openAPIV3Schema"); {
	case raw == nil && !keepAll:
		c.Required(inSchema, "schemas are required")
	case raw != nil && keepAll:
		if hasDefault(raw) {
			c.Invalid(at("preserveUnknownFields"), true, "must be false in order to use defaults in the schema")
		}
	case raw != nil:
		c.schema(raw, inSchema)
	}
	c.deprecation(version, where)
	c.columns(children(version, "additionalPrinterColumns"), where.Field("additionalPrinterColumns"))
	c.scale(child(child(version, "subresources"), "scale"), where.Field("subresources").Field("scale"))
}

// schema checks that a schema is structural, and then its defaults.
func (c *check) schema(raw map[string]any, where *field.Path) {
	found := &structural{Errors: &field.Errors{}, extension: c.vocabulary.Extension}
	found.schema(raw, atRoot, where)
	if len(found.Causes()) > 0 {
		c.Join(found.Errors)
		return
	}
	reader := &compiler{vocabulary: c.vocabulary}
	eachSchema(raw, where, func(s map[string]any, where *field.Path) {
		if s["default"] != nil {
			c.schemas.CheckDefault(reader.schema(s), where.Field("default"), &c.Errors)
		}
	})
}

// eachSchema visits a schema and all that describe what stands below it.
func eachSchema(s map[string]any, where *field.Path, visit func(map[string]any, *field.Path)) {
	visit(s, where)
	for name, property := range child(s, "properties") {
		eachSchema(asSchema(property), where.Field("properties").Entry(name), visit)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if below := child(s, name); below != nil {
			eachSchema(below, where.Field(name), visit)
		}
	}
}

func hasDefault(s map[string]any) (found bool) {
	eachSchema(s, nil, func(s map[string]any, _ *field.Path) { found = found || s["default"] != nil })
	return found
}

// maxWarning bounds the text that clients of a deprecated version are told.
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
	case strings.ContainsFunc(warning, func(r rune) bool { return !unicode.IsPrint(r) }):
		c.Invalid(where, warning, "must only contain printable UTF-8 characters")
	}
}

// columnTypes and columnFormats are what columns may be.
var (
	columnTypes   = []string{"integer", "number", "string", "boolean", "date"}
	columnFormats = []string{"int32", "int64", "float", "double", "byte", "date", "date-time", "password"}
)

func (c *check) columns(columns []map[string]any, where *field.Path) {
	for i, column := range columns {
		below := where.Item(i)
		if text(column, "name") == "" {
			c.Required(below.Field("name"), "")
		}
		if kind := text(column, "type"); kind == "" {
			c.Required(below.Field("type"), "must be one of "+strings.Join(columnTypes, ","))
		} else if !slices.Contains(columnTypes, kind) {
			c.Invalid(below.Field("type"), kind, "must be one of "+strings.Join(columnTypes, ","))
		}
		if format := text(column, "format"); format != "" && !slices.Contains(columnFormats, format) {
			c.Invalid(below.Field("format"), format, "must be one of "+strings.Join(columnFormats, ","))
		}
		path := text(column, "jsonPath")
		if path == "" {
			c.Required(below.Field("jsonPath"), "")
		} else if err := jsonpath.New("").Parse("{" + path + "}"); err != nil || !strings.HasPrefix(path, ".") {
			c.Invalid(below.Field("jsonPath"), path, "must be a simple json path starting with .")
		}
	}
}

// plainPath is a path of plain names.
var plainPath = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_-]*)+$`)

// scale checks the paths of a scale.
func (c *check) scale(s map[string]any, where *field.Path) {
	if s == nil {
		return
	}
	for _, p := range []struct {
		name     string
		required bool
		below    []string
	}{
		{"specReplicasPath", true, []string{".spec."}},
		{"statusReplicasPath", true, []string{".status."}},
		{"labelSelectorPath", false, []string{".spec.", ".status."}},
	} {
		path := text(s, p.name)
		starts := slices.ContainsFunc(p.below, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		switch {
		case path == "" && p.required:
			c.Required(where.Field(p.name), "")
		case path != "" && (!starts || !plainPath.MatchString(path)):
			c.Invalid(where.Field(p.name), path, "should be a json path under "+strings.Trim(strings.Join(p.below, " or "), "."))
		}
	}
}

// conversion checks how objects get from one version to another.
func (c *check) conversion() {
	conversion := child(c.spec, "conversion")
	hook, where := child(conversion, "webhook"), at("conversion")
	switch strategy := text(conversion, "strategy"); strategy {
	case "Webhook":
		c.webhook(hook, where.Field("webhook"))
	case "", "None":
		if hook != nil {
			c.Forbidden(where.Field("webhook"), "should not be set when strategy is not set to Webhook")
		}
	default:
		c.NotSupported(where.Field("strategy"), strategy, "None", "Webhook")
	}
}

func (c *check) webhook(hook map[string]any, where *field.Path) {
	if child(hook, "clientConfig") == nil {
		c.Required(where.Field("clientConfig"), "required when strategy is set to Webhook")
	}
	versions := texts(hook, "conversionReviewVersions")
	switch {
	case len(versions) == 0:
		c.Required(where.Field("conversionReviewVersions"), "")
	case !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1"):
		c.Invalid(where.Field("conversionReviewVersions"), versions, "must include at least one of v1, v1beta1")
	}
}

// fixed checks what stays as it is: the name of the object follows from the group
// and the plural, and the place of objects from the scope.
func (c *check) fixed() {
	c.same(text(c.spec, "group"), text(c.oldSpec, "group"), at("group"))
	names, old := child(c.spec, "names"), child(c.oldSpec, "names")
	c.same(text(names, "plural"), text(old, "plural"), at("names", "plural"))
	if conditionTrue(c.oldStatus, established) {
		c.same(text(c.spec, "scope"), text(c.oldSpec, "scope"), at("scope"))
		c.same(text(names, "kind"), text(old, "kind"), at("names", "kind"))
	}
}

func (c *check) same(value, old string, where *field.Path) {
	if value != old {
		c.Invalid(where, value, "field is immutable")
	}
}
