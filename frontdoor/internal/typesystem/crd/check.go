package crd

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conversion"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/structural"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/versions"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// check is one validation of a definition. It validates the v1beta1 form, which has the
// fields common to all versions once: clients expect the field paths of that form in
// errors, whatever version they use.
type check struct {
	field.Errors
	Rules
	// object and old are in the version of the request; old is nil for a create.
	object, old map[string]any
	isV1        bool
	// The spec and status of object and old in the v1beta1 form.
	spec, oldSpec     map[string]any
	status, oldStatus map[string]any
	relaxed           relaxed
}

// relaxed are the rules that are not enforced, either because the request is in v1beta1, or
// because the old definition violates them already.
type relaxed struct{ schemas, structure, defaults, reviews bool }

// Rules validate definitions.
type Rules struct {
	Vocabulary vocabulary.Vocabulary
	// Types has the built-in types, whose names definitions must not use.
	Types *catalogue.Catalogue
	// Schemas validates defaults.
	Schemas *schema.Engine
	// Expressions says what validation rules may use.
	Expressions *cel.Engine
}

// Check returns nil or a Status (422) with all errors of a definition, in any version,
// besides those that its published schema has found. old is nil for a create.
func (r Rules) Check(object, old map[string]any, found ...services.StatusCause) error {
	c := r.newCheck(object, old)
	c.Add(found...)
	c.relax()
	for _, of := range [...]string{"name", "generateName"} {
		name := tree.Text(tree.Child(object, "metadata"), of)
		if old == nil && name != "" && name != tree.Text(tree.Child(c.spec, "names"), "plural")+"."+tree.Text(c.spec, "group") {
			c.Invalid((&field.Path{Name: "metadata"}).Field(of), name, `must be spec.names.plural+"."+spec.group`)
		}
	}
	c.group()
	c.names()
	c.reservedNames()
	c.versions()
	c.conversion()
	c.storedVersions()
	c.approved()
	if old != nil {
		c.immutable()
	}
	return c.result()
}

// newCheck prepares a check.
func (r Rules) newCheck(object, old map[string]any) *check {
	converted, before := asV1beta1(object, r.Vocabulary), asV1beta1(old, r.Vocabulary)
	return &check{Rules: r, object: object, old: old, isV1: strings.HasSuffix(tree.Text(object, "apiVersion"), "/v1"),
		spec: tree.Child(converted, "spec"), oldSpec: tree.Child(before, "spec"), status: tree.Child(converted, "status"), oldStatus: tree.Child(before, "status")}
}

// result returns the Status of all errors; nil if there are none.
func (c *check) result() error {
	causes := c.Causes()
	if len(causes) == 0 {
		return nil
	}
	name := tree.Text(tree.Child(c.object, "metadata"), "name")
	return services.Invalid(c.Vocabulary.Group("apiextensions."), "CustomResourceDefinition", name, causes)
}

// Mistyped returns a schema.Malformed if a keyword of a definition's schemas has a wrong JSON type: such a definition
// cannot be decoded.
func Mistyped(definition map[string]any, v vocabulary.Vocabulary) error {
	const kind = "CustomResourceDefinition"
	spec := tree.Child(definition, "spec")
	found := []string{structural.Mistyped(tree.Child(tree.Child(spec, "validation"), "openAPIV3Schema"), at("validation", "openAPIV3Schema"), v.Extension)}
	for i, version := range children(spec, "versions") {
		where := at("versions").Item(i).Field("schema").Field("openAPIV3Schema")
		found = append(found, structural.Mistyped(tree.Child(tree.Child(version, "schema"), "openAPIV3Schema"), where, v.Extension))
	}
	why := cmp.Or(found...)
	if why == "" {
		return nil
	}
	version := tree.Text(definition, "apiVersion")
	return schema.Malformed{Why: why, Status: services.BadRequest("%s in version %q cannot be handled as a %s: %s", kind, version[strings.LastIndexByte(version, '/')+1:], kind, why)}
}

// asV1beta1 returns a definition in version v1beta1, unchanged if it cannot be converted.
func asV1beta1(object map[string]any, v vocabulary.Vocabulary) map[string]any {
	to := &catalogue.Type{Group: v.Group("apiextensions."), Version: "v1beta1", Kind: "CustomResourceDefinition", Resource: "customresourcedefinitions"}
	if object == nil || tree.Text(object, "apiVersion") == to.APIVersion() {
		return object
	}
	if converted, err := versions.New(v).Convert(context.Background(), object, to); err == nil {
		return converted
	}
	return object
}

// relax determines the rules that are not enforced.
func (c *check) relax() {
	isOld := !c.isV1
	c.relaxed = relaxed{schemas: isOld, structure: isOld, defaults: !isOld}
	if c.oldSpec == nil {
		return
	}
	before := asV1(c.old, c.Vocabulary)
	for _, version := range children(tree.Child(before, "spec"), "versions") {
		raw := tree.Child(tree.Child(version, "schema"), "openAPIV3Schema")
		c.relaxed.schemas = c.relaxed.schemas || raw == nil
		c.relaxed.defaults = c.relaxed.defaults || hasDefault(raw)
	}
	if c.oldSpec["preserveUnknownFields"] == true {
		c.relaxed.structure = c.relaxed.structure || len(structureOf(tree.Child(before, "spec"), c.Vocabulary)) > 1
	}
	reviews := tree.Texts(tree.Child(c.oldSpec, "conversion"), "conversionReviewVersions")
	c.relaxed.reviews = len(reviews) > 0 && !slices.ContainsFunc(reviews, conversion.Supports)
}

// at returns a field path below spec.
func at(names ...string) *field.Path {
	path := &field.Path{Name: "spec"}
	for _, name := range names {
		path = path.Field(name)
	}
	return path
}

// group validates the group and the scope.
func (c *check) group() {
	group := tree.Text(c.spec, "group")
	switch problems := validation.IsDNS1123Subdomain(group); {
	case group == "":
		c.Required(at("group"), "")
	case len(problems) > 0:
		c.Invalid(at("group"), group, strings.Join(problems, ","))
	case !strings.Contains(group, "."):
		c.Invalid(at("group"), group, "should be a domain with at least one dot")
	}
	switch scope := tree.Text(c.spec, "scope"); scope {
	case "":
		c.Required(at("scope"), "")
	case "Cluster", "Namespaced":
	default:
		c.NotSupported(at("scope"), scope, "Cluster", "Namespaced")
	}
}

// names validates the names.
func (c *check) names() {
	n, where := namesOf(tree.Child(c.spec, "names")).completed(), at("names")
	for name, value := range map[string]string{"plural": n.Plural, "singular": n.Singular} {
		if value == "" {
			c.Required(where.Field(name), "")
		} else {
			c.label(where.Field(name), value)
		}
	}
	for name, value := range map[string]string{"kind": n.Kind, "listKind": n.ListKind} {
		if value == "" {
			c.Required(where.Field(name), "")
		} else if problems := validation.IsDNS1035Label(strings.ToLower(value)); len(problems) > 0 {
			c.Invalid(where.Field(name), value, "may have mixed case, but should otherwise match: "+strings.Join(problems, ","))
		}
	}
	if n.Kind != "" && n.Kind == n.ListKind {
		c.Invalid(where.Field("listKind"), n.ListKind, "kind and listKind may not be the same")
	}
	for name, values := range map[string][]string{"shortNames": n.ShortNames, "categories": n.Categories} {
		for i, value := range values {
			c.label(where.Field(name).Item(i), value)
		}
	}
}

func (c *check) label(where *field.Path, value string) {
	if problems := validation.IsDNS1035Label(value); len(problems) > 0 {
		c.Invalid(where, value, strings.Join(problems, ","))
	}
}

// storedVersions checks that status.storedVersions contains the storage version and only
// versions of the spec, so that every stored object can be read.
func (c *check) storedVersions() {
	names, where := tree.Texts(c.status, "storedVersions"), (&field.Path{Name: "status"}).Field("storedVersions")
	if len(names) == 0 {
		c.Invalid(where, names, "must have at least one stored version")
		return
	}
	left := map[string]int{} // those that no version has named yet
	for i, name := range names {
		left[name] = i
	}
	for _, version := range children(c.spec, "versions") {
		name := tree.Text(version, "name")
		if _, ok := left[name]; version["storage"] == true && !ok {
			c.Invalid(where, names, "must have the storage version "+name)
		}
		delete(left, name)
	}
	for name, i := range left {
		c.Invalid(where.Item(i), name, c.unlisted(name))
	}
}

// unlisted is the message about a stored version that the definition does not have.
func (c *check) unlisted(name string) string {
	if !isLater(c.Types) {
		return "must appear in spec.versions"
	}
	return "missing from spec.versions; " + name + " was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in " +
		name + " and removes " + name + " from status.storedVersions"
}

// immutable validates immutable fields: the name of the definition is derived from the
// group and the plural, and the storage keys of objects depend on the scope.
func (c *check) immutable() {
	c.same(tree.Text(c.spec, "group"), tree.Text(c.oldSpec, "group"), at("group"))
	names, old := tree.Child(c.spec, "names"), tree.Child(c.oldSpec, "names")
	c.same(tree.Text(names, "plural"), tree.Text(old, "plural"), at("names", "plural"))
	if conditions.True(c.oldStatus, established) {
		c.same(tree.Text(c.spec, "scope"), tree.Text(c.oldSpec, "scope"), at("scope"))
		c.same(tree.Text(names, "kind"), tree.Text(old, "kind"), at("names", "kind"))
	}
}

func (c *check) same(value, old string, where *field.Path) {
	if value != old {
		c.Invalid(where, value, "field is immutable")
	}
}
