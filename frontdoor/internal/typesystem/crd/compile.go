// Package crd turns CustomResourceDefinitions into resource types, so that requests for
// custom types are processed like those for built-in ones. It validates definitions,
// decides which names and versions are served, sets the status, and prepares definitions
// for deletion. It never serves, stores or watches anything: package schema processes the
// objects, and the caller compiles each definition once per revision.
//
// It serves "Groups and paths", "Deprecation rules" and "Removals" of the
// specification, for types that are added while the service runs. Definitions are
// maps as JSON decoding makes them, in version v1 unless a function says otherwise.
package crd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	order "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/util/jsonpath"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conversion"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/selectable"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/versions"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

// Definition is a compiled CustomResourceDefinition.
type Definition struct {
	// Name of the object, as in widgets.example.com.
	Name  string
	Group string
	// Names are the accepted names if the definition has any, else the requested ones.
	Names Names
	// Established reports whether its types are served.
	Established bool
	// Shadows reports whether it requests names of built-in types. It is never established
	// then, whatever its status says.
	Shadows bool
	// Stored is the type in the storage version.
	Stored   *catalogue.Type
	uid      string
	accepted Names                        // the names that other definitions must not use
	shape    map[string][sha256.Size]byte // hashes of the schemas, by version
	since    int64                        // the first revision at which objects are stored as these schemas require
	// Surface has a type for each served version. The types are immutable: an update of the
	// object results in a new Definition.
	catalogue.Surface
}

// Verbs of custom types and of their subresources. While a definition is being deleted, its
// types have only the verbs that help to empty them.
var (
	verbs            = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	verbsOfGoing     = []string{"delete", "deletecollection", "get", "list", "watch"}
	verbsOfSubobject = []string{"get", "patch", "update"}
)

// Setting holds the inputs of Compile besides the definition.
type Setting struct {
	Vocabulary vocabulary.Vocabulary
	// Types has the built-in types.
	Types *catalogue.Catalogue
	// Webhooks makes the clients of conversion webhooks; nil if none is called.
	Webhooks *webhook.Clients
	// Revision is the object's revision. Before is the result of the previous compilation,
	// nil for the first one.
	Revision int64
	Before   *Definition
}

// Compile compiles a definition in any version. It does not repeat the validation of Check;
// it returns an error only if no type can be made of the definition.
func Compile(object map[string]any, in Setting) (Definition, error) {
	object = asV1(object, in.Vocabulary)
	whole := tree.Child(object, "spec")
	object, err := withoutSchemas(object)
	if err != nil {
		return Definition{}, err
	}
	s, status := tree.Child(object, "spec"), tree.Child(object, "status")
	names := namesOf(tree.Child(s, "names")).completed()
	accepted := namesOf(tree.Child(status, "acceptedNames"))
	if accepted.Plural == names.Plural && accepted.Kind != "" { // the plural is immutable: a client wrote another one
		names = accepted
	}
	meta := tree.Child(object, "metadata")
	d := Definition{accepted: accepted, Name: tree.Text(meta, "name"), uid: tree.Text(meta, "uid"), Group: tree.Text(s, "group"), Names: names,
		Shadows: len(builtIn(s, in.Types)) > 0}
	if d.Shadows {
		d.accepted = Names{}
	}
	d.Established = conditions.True(status, established) && !d.Shadows
	if err := d.checkNames(); err != nil {
		return Definition{}, err
	}
	if d.shape, err = shapeOf(whole); err != nil {
		return Definition{}, err
	}
	d.since = in.Revision
	if in.Before != nil && maps.Equal(d.shape, in.Before.shape) {
		d.since = in.Before.since
	}
	c := compiler{schemas: schemas{in.Vocabulary, s["preserveUnknownFields"] == true}, definition: &d, going: meta["deletionTimestamp"] != nil,
		namespaced: tree.Text(s, "scope") == "Namespaced",
		webhook:    converter(tree.Child(s, "conversion"), in), versions: children(s, "versions"), whole: children(whole, "versions")}
	c.later = isLater(in.Types)
	if d.since != in.Revision {
		c.before = in.Before
	}
	return d, c.types()
}

// withoutSchemas returns a copy of what the types of a definition have besides their schemas. Parts of a decoded object
// refer to its whole text, which they would keep in memory.
func withoutSchemas(object map[string]any) (map[string]any, error) {
	meta, s := map[string]any{}, maps.Clone(tree.Child(object, "spec"))
	for _, name := range []string{"name", "uid", "deletionTimestamp"} {
		if value, ok := tree.Child(object, "metadata")[name]; ok {
			meta[name] = value
		}
	}
	var versions []any
	for _, version := range children(s, "versions") {
		version = maps.Clone(version)
		delete(version, "schema")
		versions = append(versions, version)
	}
	if s != nil {
		s["versions"] = versions
	}
	text, err := tree.Encode(map[string]any{"metadata": meta, "spec": s, "status": tree.Child(object, "status")})
	if err != nil {
		return nil, fmt.Errorf("the definition %q: %w", tree.Text(meta, "name"), err)
	}
	return tree.Decode(text)
}

// shapeOf returns hashes of the parts of a spec that decide about the fields of objects, by version.
func shapeOf(spec map[string]any) (map[string][sha256.Size]byte, error) {
	shape := map[string][sha256.Size]byte{}
	for _, version := range children(spec, "versions") {
		text, err := tree.Encode(map[string]any{"keepAll": spec["preserveUnknownFields"] == true, "schema": version["schema"]})
		if err != nil {
			return nil, fmt.Errorf("the schema of version %q: %w", tree.Text(version, "name"), err)
		}
		shape[strings.Clone(tree.Text(version, "name"))] = sha256.Sum256(text) // not a part of the whole text
	}
	return shape, nil
}

// converter returns the conversion webhook; nil where the versions differ only in their
// names.
func converter(how map[string]any, in Setting) catalogue.Converter {
	if tree.Text(how, "strategy") != "Webhook" {
		return nil
	}
	hook := tree.Child(how, "webhook")
	var at webhook.Config
	if raw, err := json.Marshal(hook["clientConfig"]); err != nil || json.Unmarshal(raw, &at) != nil {
		at = webhook.Config{} // calls of an empty configuration return an error
	}
	return conversion.New(at, tree.Texts(hook, "conversionReviewVersions"), in.Webhooks, in.Vocabulary)
}

// types compiles all versions, because objects may be stored in any of them. Those that are
// served become types of the surface.
func (c *compiler) types() error {
	d := c.definition
	d.Definitions = catalogue.Definitions{}
	siblings := map[string]*catalogue.Type{}
	var stored *catalogue.Type
	for i, version := range c.versions {
		if len(validation.IsDNS1035Label(tree.Text(version, "name"))) > 0 {
			return fmt.Errorf("the definition %q has a version %q", d.Name, tree.Text(version, "name"))
		}
		t, err := c.compile(version, tree.Child(tree.Child(c.whole[i], "schema"), "openAPIV3Schema"))
		if err != nil {
			return err
		}
		siblings[t.Version] = t
		if version["storage"] == true {
			stored = t
		}
		if version["served"] == true || c.going && version["storage"] == true { // the deletion of its objects needs a served version
			d.Types = append(d.Types, t)
		}
	}
	if stored == nil {
		return fmt.Errorf("the definition %q has no version to store", d.Name)
	}
	d.Stored = stored
	for _, t := range siblings {
		t.Stored, t.Siblings = stored, siblings
	}
	return nil
}

// checkNames returns an error for names that cannot be part of paths and documents.
func (d *Definition) checkNames() error {
	names := []string{d.Names.Plural, strings.ToLower(d.Names.Kind)}
	if d.Names.ListKind != "" {
		names = append(names, strings.ToLower(d.Names.ListKind))
	}
	for _, name := range names {
		if len(validation.IsDNS1035Label(name)) > 0 {
			return fmt.Errorf("the definition %q has the name %q", d.Name, name)
		}
	}
	if len(validation.IsDNS1123Subdomain(d.Group)) > 0 {
		return fmt.Errorf("the definition %q has the group %q", d.Name, d.Group)
	}
	return nil
}

// asV1 returns a definition in version v1, unchanged if it cannot be converted.
func asV1(object map[string]any, v vocabulary.Vocabulary) map[string]any {
	if !strings.HasSuffix(tree.Text(object, "apiVersion"), "/v1beta1") {
		return object
	}
	to := &catalogue.Type{Group: v.Group("apiextensions."), Version: "v1", Kind: "CustomResourceDefinition", Resource: "customresourcedefinitions"}
	if converted, err := versions.New(v).Convert(context.Background(), object, to); err == nil {
		return converted
	}
	return object
}

// compiler holds what the compilation of all versions of a definition shares.
type compiler struct {
	schemas
	definition *Definition
	namespaced bool
	going      bool                // the definition is being deleted
	webhook    catalogue.Converter // nil for none
	versions   []map[string]any    // without their schemas
	whole      []map[string]any    // the same with them
	before     *Definition         // the previous compilation, if it has the same schemas
	later      bool                // the release has validation rules and selectable fields
}

// compile returns the type of one version with a schema.
func (c *compiler) compile(version, schema map[string]any) (*catalogue.Type, error) {
	d := c.definition
	t := &catalogue.Type{
		Group: d.Group, Version: tree.Text(version, "name"), Resource: d.Names.Plural, Singular: d.Names.Singular,
		Kind: d.Names.Kind, ListKind: d.Names.ListKind, ShortNames: d.Names.ShortNames, Categories: d.Names.Categories,
		Namespaced: c.namespaced, Custom: true, DefinitionUID: d.uid, Verbs: verbs, NameRule: kinds.NameSubdomain, Behavior: kinds.CustomBehavior(),
		Key:     resource.GroupResource{Group: d.Group, Resource: d.Names.Plural, Custom: true},
		Columns: columns(children(version, "additionalPrinterColumns"), c.vocabulary), Webhook: c.webhook,
		Going: c.going, Since: d.since, KeepsAll: c.keepAll,
	}
	if c.going {
		t.Verbs = verbsOfGoing
	}
	t.Subresources = subresources(t, tree.Child(version, "subresources"))
	if c.later {
		t.Selectable = selectable.Fields(version)
	}
	if version["deprecated"] == true {
		t.Deprecation = &kinds.Deprecation{Warning: tree.Text(version, "deprecationWarning")}
		if t.Deprecation.Warning == "" {
			t.Deprecation.Warning = t.APIVersion() + " " + t.Kind + " is deprecated" + c.replacement(t)
		}
	}
	if err := c.addSchemas(t, schema); err != nil {
		return nil, err
	}
	said, err := tree.Encode(map[string]any{"group": d.Group, "names": d.Names.object(), "namespaced": c.namespaced, "going": c.going, "keepAll": c.keepAll, "version": version, "schema": schema})
	t.Origin = sha256.Sum256(said)
	return t, err
}

// replacement returns the end of a warning that names the version to use instead of a
// deprecated one; "" if no newer version is served.
func (c *compiler) replacement(t *catalogue.Type) string {
	best := t.Version
	for _, version := range c.versions {
		if name := tree.Text(version, "name"); version["served"] == true && version["deprecated"] != true && order.CompareKubeAwareVersionStrings(name, best) > 0 {
			best = name
		}
	}
	if best == t.Version {
		return ""
	}
	return "; use " + t.Group + "/" + best + " " + t.Kind
}

// subresources returns the subresources of a version: status and scale, if it has them.
func subresources(t *catalogue.Type, m map[string]any) map[string]*catalogue.Subresource {
	found := map[string]*catalogue.Subresource{}
	if tree.Child(m, "status") != nil {
		found["status"] = &catalogue.Subresource{Name: "status", Kind: t.Kind, Verbs: verbsOfSubobject}
	}
	if s := tree.Child(m, "scale"); s != nil {
		found["scale"] = &catalogue.Subresource{Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: verbsOfSubobject,
			Scale: &catalogue.ScalePaths{Replicas: path(tree.Text(s, "specReplicasPath")), StatusReplicas: path(tree.Text(s, "statusReplicasPath")),
				Selector: path(tree.Text(s, "labelSelectorPath"))}}
	}
	return found
}

// path splits a path of plain names, for example .spec.replicas.
func path(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(text, "."), ".")
}

// columns returns the columns of the Table: the name and those that the version specifies.
// It returns the default columns if the version specifies none, or one with an invalid
// path.
func columns(specified []map[string]any, v vocabulary.Vocabulary) []kinds.Column {
	list := []kinds.Column{{Name: "Name", Type: "string", Format: "name", Cell: ".metadata.name",
		Description: "Name of the object, unique within its scope."}}
	for _, m := range specified {
		path := cell(tree.Text(m, "jsonPath"))
		if jsonpath.New("").Parse("{"+path+"}") != nil {
			return defaultColumns(v, list)
		}
		list = append(list, kinds.Column{Name: tree.Text(m, "name"), Type: tree.Text(m, "type"), Format: tree.Text(m, "format"),
			Description: cmp.Or(tree.Text(m, "description"), "Custom resource definition column (in JSONPath format): "+tree.Text(m, "jsonPath")),
			Priority:    int32(number(m, "priority")), Cell: kinds.CellCustom + " " + path})
	}
	if len(specified) == 0 {
		return defaultColumns(v, list)
	}
	return list
}

// defaultColumns returns the name and the age, or nil for the default of all types.
func defaultColumns(v vocabulary.Vocabulary, list []kinds.Column) []kinds.Column {
	if !v.Behaviour.CustomAge {
		return nil
	}
	return append(list[:1], kinds.Column{Name: "Age", Type: "date", Cell: ".metadata.creationTimestamp",
		Description: "Time of the object's creation, set by the server."})
}

// cell returns a path in the form of kinds.Column: with a leading dot.
func cell(path string) string {
	if strings.HasPrefix(path, ".") {
		return path
	}
	return "." + path
}

// Readers of objects: absent values, and values of another type, are read as the zero
// value.

func number(m map[string]any, name string) int64 {
	switch n := m[name].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func children(m map[string]any, name string) []map[string]any {
	list, _ := m[name].([]any)
	found := make([]map[string]any, len(list))
	for i, item := range list {
		found[i], _ = item.(map[string]any)
	}
	return found
}
