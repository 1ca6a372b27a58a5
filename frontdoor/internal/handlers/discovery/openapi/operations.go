package discovery

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
)

// describer adds the paths of one type (section "Path shapes").
type describer struct {
	*publisher
	t           *catalogue.Type
	paths       map[string]spec.PathItem
	definitions *definitions
}

// kindRef is the kind of an operation's object.
type kindRef struct{ group, version, kind string }

// call is one operation before it is rendered.
type call struct {
	verb   string // such as "list"; the prefix of the operation id
	suffix string // suffix of the operation id
	action string // machine-readable action
	about  kindRef
	answer *spec.Schema
	codes  []int // of success
	takes  []string
	gives  []string
	with   []spec.Parameter
}

// root returns the path prefix of a group version.
func root(t *catalogue.Type) string {
	if t.Group == "" {
		return "/api/" + t.Version
	}
	return "/apis/" + t.Group + "/" + t.Version
}

func (d *describer) describe() {
	collection := root(d.t) + "/" + d.t.Resource
	var scope []spec.Parameter
	if d.t.Namespaced {
		if d.t.Can("list") {
			d.add(collection, nil, spec.PathItemProps{Get: d.operation(d.list("ForAllNamespaces"))})
		}
		collection = root(d.t) + "/namespaces/{namespace}/" + d.t.Resource
		scope = []spec.Parameter{inPath("namespace", "Name of the namespace.")}
	}
	d.add(collection, scope, d.collection())
	scope = append(slices.Clone(scope), inPath("name", "Name of the "+d.t.Kind+"."))
	item := collection + "/{name}"
	d.add(item, scope, d.item(d.t.Verbs, kindRef{d.t.Group, d.t.Version, d.t.Kind}, ""))
	for _, name := range slices.Sorted(maps.Keys(d.t.Subresources)) {
		sub := d.t.Subresources[name]
		if !sub.Connect {
			d.add(item+"/"+name, scope, d.subresource(sub))
			continue
		}
		d.add(item+"/"+name, scope, d.connect(sub, ""))
		if name == "proxy" {
			further := append(slices.Clone(scope), inPath("path", "Path of the proxied request."))
			d.add(item+"/"+name+"/{path}", further, d.connect(sub, "WithPath"))
		}
	}
}

// add adds a path if it has any operations.
func (d *describer) add(path string, scope []spec.Parameter, item spec.PathItemProps) {
	if item.Get == nil && item.Put == nil && item.Post == nil && item.Delete == nil && item.Patch == nil {
		return
	}
	item.Parameters = append(slices.Clone(scope), pretty())
	d.paths[path] = spec.PathItem{PathItemProps: item}
}

func (d *describer) collection() (item spec.PathItemProps) {
	about := kindRef{d.t.Group, d.t.Version, d.t.Kind}
	if d.t.Can("list") {
		item.Get = d.operation(d.list(""))
	}
	if d.t.Can("create") {
		item.Post = d.operation(d.create(about, ""))
	}
	if d.t.Can("deletecollection") {
		item.Delete = d.operation(call{
			verb: "deleteCollection", action: "deletecollection", about: about, answer: d.meta("Status"), codes: []int{http.StatusOK},
			takes: d.formats(), with: slices.Concat([]spec.Parameter{inBody(d.meta("DeleteOptions"), false)}, selecting(), deleting()),
		})
	}
	return item
}

// item adds the operations on one object, or on a subresource of it.
func (d *describer) item(verbs []string, about kindRef, suffix string) (item spec.PathItemProps) {
	object := d.definitions.reference(about)
	if slices.Contains(verbs, "get") {
		item.Get = d.operation(call{verb: "read", suffix: suffix, action: "get", about: about, answer: object, codes: []int{http.StatusOK}})
	}
	if slices.Contains(verbs, "update") {
		item.Put = d.operation(call{
			verb: "replace", suffix: suffix, action: "put", about: about, answer: object, codes: []int{http.StatusOK, http.StatusCreated},
			takes: d.formats(), with: append(writing(), inBody(object, true)),
		})
	}
	if slices.Contains(verbs, "patch") {
		patch := d.definitions.named(d.vocabulary.Definitions + "apimachinery.pkg.apis.meta.v1.Patch")
		item.Patch = d.operation(call{
			verb: "patch", suffix: suffix, action: "patch", about: about, answer: object, codes: []int{http.StatusOK, http.StatusCreated},
			takes: d.patches(), with: append(patching(), inBody(patch, true)),
		})
	}
	if slices.Contains(verbs, "delete") {
		item.Delete = d.operation(call{
			verb: "delete", suffix: suffix, action: "delete", about: about, answer: d.meta("Status"), codes: []int{http.StatusOK, http.StatusAccepted},
			takes: d.formats(), with: append(deleting(), inBody(d.meta("DeleteOptions"), false)),
		})
	}
	return item
}

func (d *describer) subresource(sub *catalogue.Subresource) spec.PathItemProps {
	about := kindRef{d.t.Group, d.t.Version, sub.Kind}
	if sub.Version != "" {
		about.group, about.version = sub.Group, sub.Version
	}
	suffix := capital(sub.Name)
	item := d.item(sub.Verbs, about, suffix)
	if slices.Contains(sub.Verbs, "create") {
		item.Post = d.operation(d.create(about, suffix))
	}
	if sub.Name == "log" {
		item.Get = d.operation(call{
			verb: "read", suffix: suffix, action: "get", about: about, answer: spec.StringProperty(), codes: []int{http.StatusOK},
			gives: append([]string{"text/plain"}, d.formats()...), with: connecting(sub.Name),
		})
	}
	return item
}

// connect adds the operations of a proxying subresource.
func (d *describer) connect(sub *catalogue.Subresource, suffix string) (item spec.PathItemProps) {
	for verb, method := range map[string]**spec.Operation{
		"get": &item.Get, "create": &item.Post, "update": &item.Put, "patch": &item.Patch, "delete": &item.Delete,
	} {
		if slices.Contains(sub.Verbs, verb) {
			*method = d.operation(call{
				verb: "connect" + capital(verb), suffix: capital(sub.Name) + suffix, action: "connect",
				about: kindRef{d.t.Group, d.t.Version, sub.Kind}, answer: spec.StringProperty(), codes: []int{http.StatusOK},
				gives: []string{"*/*"}, with: connecting(sub.Name),
			})
		}
	}
	return item
}

func (d *describer) list(suffix string) call {
	gives := d.formats()
	for _, media := range []string{mediaJSON, d.vocabulary.Protobuf} {
		gives = append(gives, media+";stream=watch")
	}
	if d.cbor {
		gives = append(gives, cbor.Sequence)
	}
	return call{
		verb: "list", suffix: suffix, action: "list", about: kindRef{d.t.Group, d.t.Version, d.t.Kind},
		answer: d.definitions.reference(kindRef{d.t.Group, d.t.Version, d.t.ListKind}), codes: []int{http.StatusOK},
		gives: gives, with: listing(),
	}
}

func (d *describer) create(about kindRef, suffix string) call {
	object := d.definitions.reference(about)
	return call{
		verb: "create", suffix: suffix, action: "post", about: about, answer: object,
		codes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
		takes: d.formats(), with: append(writing(), inBody(object, true)),
	}
}

// operation returns the OpenAPI form of a call.
func (d *describer) operation(c call) *spec.Operation {
	if c.gives == nil {
		c.gives = d.formats()
	}
	responses := map[int]spec.Response{http.StatusUnauthorized: response(http.StatusUnauthorized, nil)}
	for _, code := range c.codes {
		responses[code] = response(code, c.answer)
	}
	return &spec.Operation{
		OperationProps: spec.OperationProps{
			ID: d.id(c), Tags: []string{d.tag()}, Description: c.verb + " " + c.about.kind, Deprecated: d.t.Deprecation != nil,
			Consumes: c.takes, Produces: c.gives, Parameters: c.with,
			Responses: &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: responses}},
		},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{
			d.vocabulary.Extension + "action": c.action,
			d.vocabulary.Extension + "group-version-kind": map[string]any{
				"group": c.about.group, "version": c.about.version, "kind": c.about.kind,
			},
		}},
	}
}

func response(code int, answer *spec.Schema) spec.Response {
	return spec.Response{ResponseProps: spec.ResponseProps{Description: http.StatusText(code), Schema: answer}}
}

// id returns the unique id of an operation, such as listAppsV1NamespacedDeployment.
func (d *describer) id(c call) string {
	id := c.verb + d.groupName() + capital(d.t.Version)
	if d.t.Namespaced && c.suffix != "ForAllNamespaces" {
		id += "Namespaced"
	}
	return id + d.t.Kind + c.suffix
}

// groupName is the group's name in operation ids: RbacAuthorization, Core.
func (d *describer) groupName() string {
	if d.t.Group == "" {
		return "Core"
	}
	var name string
	for part := range strings.SplitSeq(strings.TrimSuffix(d.vocabulary.ShortGroup(d.t.Group), "."), ".") {
		name += capital(part)
	}
	return name
}

func (d *describer) tag() string {
	return strings.ToLower(d.groupName()[:1]) + d.groupName()[1:] + "_" + d.t.Version
}

// formats returns the media types of objects.
func (d *describer) formats() []string {
	all := []string{mediaJSON, "application/yaml", d.vocabulary.Protobuf}
	if d.cbor {
		all = append(all, cbor.Media)
	}
	return all
}

// patches lists the media types of patches. Clients choose the patch type by them:
// custom types have no strategic merge patch.
func (d *describer) patches() []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	if !d.t.Custom {
		types = append(types, "application/strategic-merge-patch+json")
	}
	if d.cbor {
		types = append(types, request.MediaTypeApplyCBOR)
	}
	return types
}

// meta returns a reference to a kind that all groups share.
func (d *describer) meta(kind string) *spec.Schema {
	return d.definitions.reference(kindRef{"", "v1", kind})
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
