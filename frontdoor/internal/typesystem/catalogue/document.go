package catalogue

import (
	"fmt"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/openapi/kubernetesapi/v1_21_2"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// documents are the OpenAPI documents of releases, in Protobuf.
var documents = map[string]func() ([]byte, error){
	release.V121.String(): func() ([]byte, error) { return v1_21_2.Asset("kubernetesapi/v1_21_2/swagger.pb") },
}

// surfaceOf returns the types of a release, from its OpenAPI document.
func surfaceOf(r release.Release, v vocabulary.Vocabulary) (*Surface, error) {
	read := documents[r.String()]
	if read == nil {
		return nil, fmt.Errorf("release %s has no types", r)
	}
	asset, err := read()
	if err != nil {
		return nil, err
	}
	document := &openapi_v2.Document{}
	if err := proto.Unmarshal(asset, document); err != nil {
		return nil, fmt.Errorf("the document of %s: %w", r, err)
	}
	names := newDocumentNames(vocabulary.K8s(), v)
	definitions, err := names.definitions(document)
	if err != nil {
		return nil, err
	}
	types, err := names.types(document)
	if err != nil {
		return nil, err
	}
	return &Surface{Types: types, Definitions: definitions}, nil
}

// definitions returns the document's schemas with names and references in the chosen
// vocabulary.
func (n documentNames) definitions(document *openapi_v2.Document) (map[string]*spec.Schema, error) {
	all := document.Definitions.AdditionalProperties
	definitions := make(map[string]*spec.Schema, len(all))
	for _, named := range all {
		n.rename(named.Value)
		schema := &spec.Schema{}
		if _, err := schema.FromGnostic(named.Value); err != nil {
			return nil, fmt.Errorf("definition %s: %w", named.Name, err)
		}
		n.renameKinds(schema)
		definitions[n.definition(named.Name)] = schema
	}
	if entry := definitions[n.definition(managedFieldsEntry)]; entry != nil {
		entry.SetProperty("subresource", *spec.StringProperty().WithDescription("Subresource through which the fields were set; empty for the object itself."))
	}
	return definitions, nil
}

// managedFieldsEntry is the original name of a definition that lacks a field in the
// document: the service records the subresource of an entry as later releases do, and
// clients send back what they have read.
var managedFieldsEntry = vocabulary.K8s().Definitions + "apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry"

// types builds the types from the document's paths: each path adds verbs to a type or to
// one of its subresources.
func (n documentNames) types(document *openapi_v2.Document) ([]*Type, error) {
	types := map[string]*Type{}
	for _, path := range document.Paths.Path {
		shape, ok := parseShape(path.Name)
		if !ok {
			continue
		}
		id := shape.group + "/" + shape.version + "/" + shape.resource
		t := types[id]
		if t == nil {
			t = &Type{Group: n.group(shape.group), Version: shape.version, Resource: shape.resource, Subresources: map[string]*Subresource{}}
			types[id] = t
		}
		t.Namespaced = t.Namespaced || shape.namespaced
		for _, operation := range operations(path.Value) {
			n.add(t, shape, operation)
		}
	}
	sorted := make([]*Type, 0, len(types))
	for _, t := range types {
		if t.Kind == "" {
			return nil, fmt.Errorf("the document has no kind for %s of %s", t.Resource, t.APIVersion())
		}
		slices.Sort(t.Verbs)
		for _, sub := range t.Subresources {
			slices.Sort(sub.Verbs)
		}
		sorted = append(sorted, t)
	}
	return sorted, nil
}

// add adds the verb of an operation to its type or subresource.
func (n documentNames) add(t *Type, shape shape, op operation) {
	verb := op.verb()
	if verb == "" {
		return
	}
	kind := op.kind()
	kind.Group = n.group(kind.Group)
	if shape.subresource == "" {
		t.Kind = kind.Kind
		t.Verbs = addOnce(t.Verbs, verb)
		if verb == "list" {
			t.ListKind = kind.Kind + "List"
		}
		return
	}
	sub := t.Subresources[shape.subresource]
	if sub == nil {
		sub = &Subresource{Name: shape.subresource}
		t.Subresources[shape.subresource] = sub
	}
	sub.Kind = kind.Kind
	sub.Verbs = addOnce(sub.Verbs, verb)
	sub.Connect = sub.Connect || op.action() == "connect"
	if kind.Group != t.Group || kind.Version != t.Version {
		sub.Group, sub.Version = kind.Group, kind.Version
	}
}

func addOnce(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}

// shape is the target of a path of the document.
type shape struct {
	group, version, resource, subresource string
	namespaced                            bool
}

// parseShape parses a path template (section "Path shapes"). ok is false for paths that do
// not address a resource type, and for proxy paths with a trailing path.
func parseShape(path string) (s shape, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		s.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		s.group, s.version, parts = parts[1], parts[2], parts[3:]
	default:
		return s, false
	}
	if parts[0] == "watch" {
		parts = parts[1:]
	}
	if len(parts) > 2 && parts[1] == "{namespace}" {
		s.namespaced, parts = true, parts[2:]
	}
	s.resource = parts[0]
	if len(parts) > 2 {
		s.subresource = parts[2]
	}
	return s, len(parts) <= 3
}

// operation is one method of a path.
type operation struct {
	method string
	*openapi_v2.Operation
}

func operations(item *openapi_v2.PathItem) []operation {
	var list []operation
	for _, op := range []operation{{"get", item.Get}, {"create", item.Post}, {"update", item.Put}, {"patch", item.Patch}, {"delete", item.Delete}} {
		if op.Operation != nil {
			list = append(list, op)
		}
	}
	return list
}

// extension returns the value of a vendor extension of the operation as text; the document
// has it as YAML.
func (o operation) extension(name string) string {
	for _, e := range o.VendorExtension {
		if e.Name == name {
			return strings.TrimSpace(e.Value.Yaml)
		}
	}
	return ""
}

func (o operation) action() string { return o.extension(extensionAction) }

// verb returns the API verb of the operation; "" when it has none.
func (o operation) verb() string {
	switch action := o.action(); action {
	case "post":
		return "create"
	case "put":
		return "update"
	case "watchlist":
		return "watch"
	case "connect":
		return o.method
	default:
		return action
	}
}

// kind returns the kind in the operation's group-version-kind extension.
func (o operation) kind() (id kindID) {
	for line := range strings.Lines(o.extension(extensionKinds)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.Trim(value, " \"\n")
		switch key {
		case "group":
			id.Group = value
		case "version":
			id.Version = value
		case "kind":
			id.Kind = value
		}
	}
	return id
}
