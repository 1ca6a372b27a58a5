// Package custom turns CustomResourceDefinitions into resource types, so that
// custom types take the same path as built-in ones. It decides whether a
// definition is sound, which names and versions it brings, what its status says,
// and what deleting it means for the objects of its types. It never serves, stores
// or watches anything: objects are the schema package's, and whoever holds the
// definitions compiles each of them once per revision.
//
// It serves "Groups and paths", "Deprecation rules" and "Removals" of the
// specification, for types that are added while the service runs. Definitions are
// maps as JSON decoding makes them, in version v1 unless a function says otherwise.
package custom

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/convert"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
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
	accepted    Names // those of Names that nobody else may take
	// Surface has a type for each served version. They are immutable: a change of
	// the object is a new Definition.
	catalogue.Surface
}

// Names are what the types of a definition are called.
type Names struct {
	Plural, Singular, Kind, ListKind string
	ShortNames, Categories           []string
}

func namesOf(m map[string]any) Names {
	return Names{Plural: text(m, "plural"), Singular: text(m, "singular"), Kind: text(m, "kind"), ListKind: text(m, "listKind"),
		ShortNames: texts(m, "shortNames"), Categories: texts(m, "categories")}
}

// Verbs of custom types and of their subresources. Of a type that is going only
// what helps it to go is left.
var (
	verbs            = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	verbsOfGoing     = []string{"delete", "deletecollection", "get", "list", "watch"}
	verbsOfSubobject = []string{"get", "patch", "update"}
)

// Compile reads a definition in any version of its type. It does not repeat what
// Check finds; it fails only on what cannot make a type at all.
func Compile(object map[string]any, v vocabulary.Vocabulary) (Definition, error) {
	object = asV1(object, v)
	s, status := child(object, "spec"), child(object, "status")
	names := namesOf(child(s, "names")).completed()
	accepted := namesOf(child(status, "acceptedNames"))
	if accepted.Plural != "" && accepted.Kind != "" {
		names = accepted
	}
	d := Definition{accepted: accepted, Name: text(child(object, "metadata"), "name"), Group: text(s, "group"), Names: names, Established: conditionTrue(status, established)}
	if err := d.checkNames(); err != nil {
		return Definition{}, err
	}
	c := compiler{vocabulary: v, definition: &d, going: child(object, "metadata")["deletionTimestamp"] != nil,
		namespaced: text(s, "scope") == "Namespaced", keepAll: s["preserveUnknownFields"] == true,
		webhook: text(child(s, "conversion"), "strategy") == "Webhook"}
	d.Definitions = map[string]*spec.Schema{}
	var stored *catalogue.Type
	for _, version := range children(s, "versions") {
		if len(validation.IsDNS1035Label(text(version, "name"))) > 0 {
			return Definition{}, fmt.Errorf("the definition %q has a version %q", d.Name, text(version, "name"))
		}
		t := c.compile(version)
		if version["storage"] == true {
			stored = t
		}
		if version["served"] == true {
			d.Types = append(d.Types, t)
		}
	}
	if stored == nil {
		return Definition{}, fmt.Errorf("the definition %q has no version to store", d.Name)
	}
	stored.Stored = stored
	for _, t := range d.Types {
		t.Stored = stored
	}
	return d, nil
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
	if !strings.HasSuffix(text(object, "apiVersion"), "/v1beta1") {
		return object
	}
	to := &catalogue.Type{Group: v.Group("apiextensions."), Version: "v1", Kind: "CustomResourceDefinition"}
	if converted, err := convert.New(v).Convert(object, to); err == nil {
		return converted
	}
	return object
}

// compiler is what all versions of a definition have in common.
type compiler struct {
	vocabulary vocabulary.Vocabulary
	definition *Definition
	namespaced bool
	going      bool // the definition is being deleted
	keepAll    bool // no field is dropped
	webhook    bool
}

// compile returns the type of one version.
func (c *compiler) compile(version map[string]any) *catalogue.Type {
	d := c.definition
	t := &catalogue.Type{
		Group: d.Group, Version: text(version, "name"), Resource: d.Names.Plural, Singular: d.Names.Singular,
		Kind: d.Names.Kind, ListKind: d.Names.ListKind, ShortNames: d.Names.ShortNames, Categories: d.Names.Categories,
		Namespaced: c.namespaced, Custom: true, Verbs: verbs, NameRule: catalogue.NameSubdomain,
		Key:     resource.GroupResource{Group: d.Group, Resource: d.Names.Plural},
		Columns: columns(children(version, "additionalPrinterColumns")), Webhook: c.webhook,
	}
	if c.going {
		t.Verbs = verbsOfGoing
	}
	t.Subresources = subresources(t, child(version, "subresources"))
	if version["deprecated"] == true {
		t.Deprecation = &catalogue.Deprecation{Warning: text(version, "deprecationWarning")}
		if t.Deprecation.Warning == "" {
			t.Deprecation.Warning = t.APIVersion() + " " + t.Kind + " is deprecated"
		}
	}
	c.addSchemas(t, child(child(version, "schema"), "openAPIV3Schema"))
	return t
}

// subresources returns status and scale, where the version has them.
func subresources(t *catalogue.Type, m map[string]any) map[string]*catalogue.Subresource {
	found := map[string]*catalogue.Subresource{}
	if child(m, "status") != nil {
		found["status"] = &catalogue.Subresource{Name: "status", Kind: t.Kind, Verbs: verbsOfSubobject}
	}
	if s := child(m, "scale"); s != nil {
		found["scale"] = &catalogue.Subresource{Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: verbsOfSubobject,
			Scale: &catalogue.ScalePaths{Replicas: path(text(s, "specReplicasPath")), StatusReplicas: path(text(s, "statusReplicasPath")),
				Selector: path(text(s, "labelSelectorPath"))}}
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
// asks for; none for the default ones.
func columns(asked []map[string]any) []catalogue.Column {
	if len(asked) == 0 {
		return nil
	}
	list := []catalogue.Column{{Name: "Name", Type: "string", Format: "name", Cell: ".metadata.name",
		Description: "Name of the object, unique within its scope."}}
	for _, m := range asked {
		list = append(list, catalogue.Column{Name: text(m, "name"), Type: text(m, "type"), Format: text(m, "format"),
			Description: text(m, "description"), Priority: int32(number(m, "priority")), Cell: cell(text(m, "jsonPath"))})
	}
	return list
}

// cell writes a path as columns do.
func cell(path string) string {
	if strings.HasPrefix(path, ".") {
		return path
	}
	return "." + path
}

// completed returns the names with those that follow from the kind.
func (n Names) completed() Names {
	if n.Singular == "" {
		n.Singular = strings.ToLower(n.Kind)
	}
	if n.ListKind == "" && n.Kind != "" {
		n.ListKind = n.Kind + "List"
	}
	return n
}

// Reading objects: what is absent, or of another type, reads as the zero value.

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func number(m map[string]any, name string) int64 {
	switch n := m[name].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func child(m map[string]any, name string) map[string]any {
	c, _ := m[name].(map[string]any)
	return c
}

func children(m map[string]any, name string) []map[string]any {
	list, _ := m[name].([]any)
	found := make([]map[string]any, len(list))
	for i, item := range list {
		found[i], _ = item.(map[string]any)
	}
	return found
}

func texts(m map[string]any, name string) []string {
	list, _ := m[name].([]any)
	var found []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			found = append(found, s)
		}
	}
	return slices.Clip(found)
}
