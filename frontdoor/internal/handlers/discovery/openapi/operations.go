package openapi

import (
	"maps"
	"net/http"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
)

const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"
	anyMedia  = "*/*"
)

// schemes are those of all operations.
var schemes = []string{"https"}

// describer adds the paths of one type (section "Path shapes").
type describer struct {
	*document
	t *catalogue.Type
}

// call is one operation before it is rendered.
type call struct {
	verb   string // the first word of the operation id, before group and version
	of     string // the rest of the operation id
	text   string // what it does
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
	collection, scope := "/"+d.t.Resource, []spec.Parameter(nil)
	if d.t.Namespaced {
		if d.t.Can("list") {
			d.add("/"+d.t.Resource, nil, spec.PathItemProps{Get: d.list(d.t.Kind + "ForAllNamespaces")})
		}
		if d.watchable() {
			d.add("/watch/"+d.t.Resource, nil, spec.PathItemProps{Get: d.watch("watchlist", d.t.Kind+"ListForAllNamespaces")})
		}
		collection, scope = "/namespaces/{namespace}/"+d.t.Resource, []spec.Parameter{inPath("namespace", "Name of the namespace.")}
	}
	d.add(collection, scope, d.collection())
	if d.watchable() {
		d.add("/watch"+collection, scope, spec.PathItemProps{Get: d.watch("watchlist", d.subject()+"List")})
	}
	scope = append(slices.Clone(scope), inPath("name", "Name of the "+d.t.Kind+"."))
	item := collection + "/{name}"
	d.add(item, scope, d.item(d.t.Verbs, d.own(), ""))
	if d.watchable() {
		d.add("/watch"+item, scope, spec.PathItemProps{Get: d.watch("watch", d.subject())})
	}
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

// watchable reports whether the type has separate paths for watches, which custom types never had.
func (d *describer) watchable() bool { return d.t.Can("watch") && !d.t.Custom }

// own is the kind of the type.
func (d *describer) own() kindRef { return kindRef{d.t.Group, d.t.Version, d.t.Kind} }

// subject is the type in operation ids.
func (d *describer) subject() string {
	if d.t.Namespaced {
		return "Namespaced" + d.t.Kind
	}
	return d.t.Kind
}

// add adds a path below that of the group version if it has any operations. Parameters that
// all operations have are those of the path.
func (d *describer) add(path string, scope []spec.Parameter, item spec.PathItemProps) {
	operations := operationsOf(&item)
	if len(operations) == 0 {
		return
	}
	for _, o := range operations {
		o.Parameters = append(o.Parameters, scope...)
	}
	item.Parameters = common(operations)
	d.paths[root(d.t)+path] = spec.PathItem{PathItemProps: item}
}

// operationsOf returns the operations of a path.
func operationsOf(item *spec.PathItemProps) []*spec.Operation {
	all := []*spec.Operation{item.Get, item.Put, item.Post, item.Delete, item.Options, item.Head, item.Patch}
	return slices.DeleteFunc(all, func(o *spec.Operation) bool { return o == nil })
}

func (d *describer) collection() (item spec.PathItemProps) {
	if d.t.Can("list") {
		item.Get = d.list(d.subject())
	}
	if d.t.Can("create") {
		item.Post = d.create(d.own(), "")
	}
	if d.t.Can("deletecollection") {
		with := slices.Concat(d.selecting(), d.deleting())
		if d.t.Custom { // as the reference server describes it: the options of a list
			with = d.listing()
		}
		item.Delete = d.operation(call{
			verb: "delete", of: "Collection" + d.subject(), action: "deletecollection", text: "Deletes objects of kind " + d.t.Kind + ".",
			about: d.own(), answer: d.meta("Status"), codes: []int{http.StatusOK}, with: append(with, pretty()),
		})
	}
	return item
}

// item describes the operations on one object, or on a subresource of it.
func (d *describer) item(verbs []string, about kindRef, suffix string) (item spec.PathItemProps) {
	object, of, what := d.reference(about), d.subject()+suffix, d.what(suffix)
	if slices.Contains(verbs, "get") {
		with := []spec.Parameter{pretty()}
		if d.t.Custom {
			with = append(with, resourceVersion())
		}
		item.Get = d.operation(call{verb: "read", of: of, action: "get", text: "Returns " + what + ".", about: about, answer: object, codes: []int{http.StatusOK}, with: with})
	}
	if slices.Contains(verbs, "update") {
		item.Put = d.operation(call{
			verb: "replace", of: of, action: "put", text: "Replaces " + what + ".", about: about, answer: object, codes: []int{http.StatusOK, http.StatusCreated},
			with: append(writing(), inBody(object, true)),
		})
	}
	if slices.Contains(verbs, "patch") {
		codes := []int{http.StatusOK, http.StatusCreated}
		if d.t.Custom {
			codes = codes[:1]
		}
		item.Patch = d.operation(call{
			verb: "patch", of: of, action: "patch", text: "Changes " + what + ".", about: about, answer: object, codes: codes,
			takes: d.patches(), with: append(patching(), inBody(d.shared("apis.meta.v1.Patch"), true)),
		})
	}
	if slices.Contains(verbs, "delete") {
		answer := d.meta("Status")
		if d.t.Behavior.ReturnDeleted && !d.t.Behavior.SpecFinalizers {
			answer = object
		}
		item.Delete = d.operation(call{
			verb: "delete", of: of, action: "delete", text: "Deletes " + what + ".", about: about, answer: answer, codes: []int{http.StatusOK, http.StatusAccepted},
			with: append(d.deleting(), pretty()),
		})
	}
	return item
}

// what names the object or subresource of an operation in descriptions.
func (d *describer) what(suffix string) string {
	if suffix == "" {
		return "the " + d.t.Kind
	}
	return lower(suffix) + " of the " + d.t.Kind
}

func (d *describer) subresource(sub *catalogue.Subresource) spec.PathItemProps {
	about := kindRef{d.t.Group, d.t.Version, sub.Kind}
	if sub.Version != "" {
		about.group, about.version = sub.Group, sub.Version
	}
	suffix := capital(sub.Name)
	item := d.item(sub.Verbs, about, suffix)
	if slices.Contains(sub.Verbs, "create") {
		item.Post = d.create(about, suffix)
	}
	if sub.Name == "log" {
		item.Get = d.operation(call{
			verb: "read", of: d.subject() + suffix, action: "get", text: "Returns " + d.what(suffix) + ".", about: about, answer: spec.StringProperty(), codes: []int{http.StatusOK},
			gives: append([]string{"text/plain"}, d.formats()...), with: append(d.connecting(sub.Name), pretty()),
		})
	}
	return item
}

// connect describes the operations of a proxying subresource. OPTIONS is not served: it has
// no verb.
func (d *describer) connect(sub *catalogue.Subresource, suffix string) (item spec.PathItemProps) {
	for _, method := range []struct {
		name, verb string
		operation  **spec.Operation
	}{
		{"Get", "get", &item.Get}, {"Post", "create", &item.Post}, {"Put", "update", &item.Put}, {"Patch", "patch", &item.Patch},
		{"Delete", "delete", &item.Delete}, {"Head", "", &item.Head},
	} {
		if slices.Contains(sub.Verbs, method.verb) || method.verb == "" && sub.Name == "proxy" {
			*method.operation = d.operation(call{
				verb: "connect", of: method.name + d.subject() + capital(sub.Name) + suffix, action: "connect", text: "Connects to " + d.what(capital(sub.Name)) + ".",
				about: kindRef{d.t.Group, d.t.Version, sub.Kind}, answer: spec.StringProperty(), codes: []int{http.StatusOK},
				gives: []string{anyMedia}, with: d.connecting(sub.Name),
			})
		}
	}
	return item
}

func (d *describer) list(of string) *spec.Operation {
	gives := d.formats()
	if !d.t.Custom {
		gives = d.streams()
	}
	return d.operation(call{
		verb: "list", of: of, action: "list", text: "Lists or watches objects of kind " + d.t.Kind + ".", about: d.own(),
		answer: d.reference(kindRef{d.t.Group, d.t.Version, d.t.ListKind}), codes: []int{http.StatusOK},
		gives: gives, with: append(d.listing(), pretty()),
	})
}

// watch describes a path that only serves watches.
func (d *describer) watch(action, of string) *spec.Operation {
	return d.operation(call{
		verb: "watch", of: of, action: action, text: "Watches objects of kind " + d.t.Kind + ". Deprecated: a list with the parameter watch does the same.",
		about: d.own(), answer: d.meta("WatchEvent"), codes: []int{http.StatusOK}, gives: d.streams(), with: append(d.listing(), pretty()),
	})
}

func (d *describer) create(about kindRef, suffix string) *spec.Operation {
	object := d.reference(about)
	return d.operation(call{
		verb: "create", of: d.subject() + suffix, action: "post", text: "Creates " + d.what(suffix) + ".", about: about, answer: object,
		codes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
		with:  append(writing(), inBody(object, true)),
	})
}

// operation returns the OpenAPI form of a call.
func (d *describer) operation(c call) *spec.Operation {
	if c.gives == nil {
		c.gives = d.formats()
	}
	if c.takes == nil {
		c.takes = []string{anyMedia}
		if d.t.Custom {
			c.takes = d.formats()
		}
	}
	group := d.groupName(d.t.Group)
	return &spec.Operation{
		OperationProps: spec.OperationProps{
			ID: c.verb + group + identifier(d.t.Version) + identifier(c.of), Tags: []string{tag(group, d.t.Version)}, Description: c.text,
			Consumes: c.takes, Produces: c.gives, Schemes: schemes, Parameters: c.with, Responses: responses(c.answer, c.codes...),
		},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{
			d.Vocabulary.Extension + "action": c.action,
			d.Vocabulary.Extension + "group-version-kind": map[string]any{
				"group": c.about.group, "version": c.about.version, "kind": c.about.kind,
			},
		}},
	}
}

// responses returns the responses of an operation that returns one schema.
func responses(answer *spec.Schema, codes ...int) *spec.Responses {
	response := func(code int, answer *spec.Schema) spec.Response {
		return spec.Response{ResponseProps: spec.ResponseProps{Description: http.StatusText(code), Schema: answer}}
	}
	all := map[int]spec.Response{http.StatusUnauthorized: response(http.StatusUnauthorized, nil)}
	for _, code := range codes {
		all[code] = response(code, answer)
	}
	return &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: all}}
}

// formats returns the media types of objects that are not of custom types.
func (d *document) formats() []string {
	all := []string{mediaJSON, mediaYAML, d.Vocabulary.Protobuf}
	if d.CBOR {
		all = append(all, cbor.Media)
	}
	return all
}

// formats returns the media types of objects.
func (d *describer) formats() []string {
	all := d.document.formats()
	if d.t.Custom {
		all = slices.DeleteFunc(all, func(media string) bool { return media == d.Vocabulary.Protobuf })
	}
	return all
}

// streams returns the media types of objects and of watches.
func (d *describer) streams() []string {
	all := d.formats()
	for _, media := range []string{mediaJSON, d.Vocabulary.Protobuf} {
		all = append(all, media+";stream=watch")
	}
	if d.CBOR {
		all = append(all, cbor.Sequence)
	}
	return all
}

// patches lists the media types of patches. Clients choose the patch type by them:
// custom types have no strategic merge patch.
func (d *describer) patches() []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json"}
	if !d.t.Custom {
		types = append(types, "application/strategic-merge-patch+json")
	}
	types = append(types, "application/apply-patch+yaml")
	if d.CBOR {
		types = append(types, request.MediaTypeApplyCBOR)
	}
	return types
}
