// Package crd turns CustomResourceDefinitions into resource types, so that
// custom types take the same path as built-in ones. It decides whether a
// definition is sound, which names and versions it brings, what its status says,
// and what deleting it means for the objects of its types. It never serves, stores
// or watches anything: objects are the schema package's, and whoever holds the
// definitions compiles each of them once per revision.
//
// It serves "Groups and paths", "Deprecation rules" and "Removals" of the
// specification, for types that are added while the service runs. Definitions are
// maps as JSON decoding makes them, in version v1 unless a function says otherwise.
package crd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	order "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conversion"
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
	// Names that the definition has been given.
	Names Names
	// Established says whether its types are served.
	Established bool
	// Shadows says that it asks for names of built-in types, so that it is never
	// established, whatever its status says.
	Shadows bool
	// Stored is the version in which new objects are kept.
	Stored   *catalogue.Type
	uid      string
	accepted Names          // those of Names that nobody else may take
	shape    map[string]any // the schemas, by version
	since    int64          // the first revision at which objects are stored as they want
	// Surface has a type for each served version. They are immutable: a change of
	// the object is a new Definition.
	catalogue.Surface
}

// Verbs of custom types and of their subresources. Of a type that is going only
// what helps it to go is left.
var (
	verbs            = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	verbsOfGoing     = []string{"delete", "deletecollection", "get", "list", "watch"}
	verbsOfSubobject = []string{"get", "patch", "update"}
)

// Setting is what a definition is compiled in.
type Setting struct {
	Vocabulary vocabulary.Vocabulary
	// Types has the built-in types.
	Types *catalogue.Catalogue
	// Find finds the services that conversion webhooks are.
	Find webhook.Resolver
	// Revision is that of the object, and Before what it was compiled to last; nil
	// when this is the first time.
	Revision int64
	Before   *Definition
}

// Compile reads a definition in any version of its type. It does not repeat what
// Check finds; it fails only on what cannot make a type at all.
func Compile(object map[string]any, in Setting) (Definition, error) {
	object = asV1(object, in.Vocabulary)
	s, status := tree.Child(object, "spec"), tree.Child(object, "status")
	names := namesOf(tree.Child(s, "names")).completed()
	accepted := namesOf(tree.Child(status, "acceptedNames"))
	if accepted.Plural == names.Plural && accepted.Kind != "" { // the plural never changes: another one is a client's
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
	d.shape, d.since = shapeOf(s), in.Revision
	if in.Before != nil && reflect.DeepEqual(d.shape, in.Before.shape) {
		d.since = in.Before.since
	}
	c := compiler{vocabulary: in.Vocabulary, definition: &d, going: meta["deletionTimestamp"] != nil,
		namespaced: tree.Text(s, "scope") == "Namespaced", keepAll: s["preserveUnknownFields"] == true,
		webhook: converter(tree.Child(s, "conversion"), in), versions: children(s, "versions")}
	return d, c.types()
}

// shapeOf returns what a spec says of the fields of objects, by version.
func shapeOf(spec map[string]any) map[string]any {
	shape := map[string]any{"": spec["preserveUnknownFields"] == true}
	for _, version := range children(spec, "versions") {
		shape[tree.Text(version, "name")] = version["schema"]
	}
	return shape
}

// converter returns what converts between the versions; nil where they differ in
// nothing but their names.
func converter(how map[string]any, in Setting) catalogue.Converter {
	if tree.Text(how, "strategy") != "Webhook" {
		return nil
	}
	hook := tree.Child(how, "webhook")
	var at webhook.Config
	if raw, err := json.Marshal(hook["clientConfig"]); err != nil || json.Unmarshal(raw, &at) != nil {
		at = webhook.Config{} // whose client tells that there is no place to ask
	}
	return conversion.New(at, tree.Texts(hook, "conversionReviewVersions"), in.Find, in.Vocabulary)
}

// types compiles the versions: all of them may be stored, and those that are served
// are types of the surface.
func (c *compiler) types() error {
	d := c.definition
	d.Definitions = map[string]*spec.Schema{}
	siblings := map[string]*catalogue.Type{}
	var stored *catalogue.Type
	for _, version := range c.versions {
		if len(validation.IsDNS1035Label(tree.Text(version, "name"))) > 0 {
			return fmt.Errorf("the definition %q has a version %q", d.Name, tree.Text(version, "name"))
		}
		t := c.compile(version)
		siblings[t.Version] = t
		if version["storage"] == true {
			stored = t
		}
		if version["served"] == true || c.going && version["storage"] == true { // whoever empties it needs one
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

// checkNames refuses names that cannot stand in paths and documents.
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

// asV1 returns a definition in version v1.
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

// compiler is what all versions of a definition have in common.
type compiler struct {
	vocabulary vocabulary.Vocabulary
	definition *Definition
	namespaced bool
	going      bool                // the definition is being deleted
	keepAll    bool                // no field is dropped
	webhook    catalogue.Converter // nil without
	versions   []map[string]any
}

// compile returns the type of one version.
func (c *compiler) compile(version map[string]any) *catalogue.Type {
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
	if version["deprecated"] == true {
		t.Deprecation = &kinds.Deprecation{Warning: tree.Text(version, "deprecationWarning")}
		if t.Deprecation.Warning == "" {
			t.Deprecation.Warning = t.APIVersion() + " " + t.Kind + " is deprecated" + c.replacement(t)
		}
	}
	c.addSchemas(t, tree.Child(tree.Child(version, "schema"), "openAPIV3Schema"))
	return t
}

// replacement names the best version to use instead of a deprecated one, if there is
// any that is newer.
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

// subresources returns status and scale, where the version has them.
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

// path splits a path of plain names, as in .spec.replicas.
func path(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(text, "."), ".")
}

// columns returns the columns of the Table: the name and those that the version
// asks for; the default ones when it asks for none, or for one that has no path.
func columns(asked []map[string]any, v vocabulary.Vocabulary) []kinds.Column {
	list := []kinds.Column{{Name: "Name", Type: "string", Format: "name", Cell: ".metadata.name",
		Description: "Name of the object, unique within its scope."}}
	for _, m := range asked {
		path := cell(tree.Text(m, "jsonPath"))
		if jsonpath.New("").Parse("{"+path+"}") != nil {
			return defaultColumns(v, list)
		}
		list = append(list, kinds.Column{Name: tree.Text(m, "name"), Type: tree.Text(m, "type"), Format: tree.Text(m, "format"),
			Description: cmp.Or(tree.Text(m, "description"), "Custom resource definition column (in JSONPath format): "+tree.Text(m, "jsonPath")),
			Priority:    int32(number(m, "priority")), Cell: path})
	}
	if len(asked) == 0 {
		return defaultColumns(v, list)
	}
	return list
}

// defaultColumns adds the age to the name, or leaves both to the default of any type.
func defaultColumns(v vocabulary.Vocabulary, list []kinds.Column) []kinds.Column {
	if !v.Behaviour.CustomAge {
		return nil
	}
	return append(list[:1], kinds.Column{Name: "Age", Type: "date", Cell: ".metadata.creationTimestamp",
		Description: "Time of the object's creation, set by the server."})
}

// cell writes a path as columns do.
func cell(path string) string {
	if strings.HasPrefix(path, ".") {
		return path
	}
	return "." + path
}

// Reading objects: what is absent, or of another type, reads as the zero value.

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
