package writes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/growth"
	"github.com/portico-platform/portico/services/tree"
)

// oneObject is a store with a single object, which accepts every write.
type oneObject struct {
	services.Store
	object services.Object
}

func (s *oneObject) Get(context.Context, services.GetRequest) (services.Object, error) {
	return s.object, nil
}

func (s *oneObject) Create(_ context.Context, r services.CreateRequest) (services.Object, error) {
	return services.Object{Key: r.Key, JSON: r.Content.JSON, Revision: 2}, nil
}

func (s *oneObject) Update(_ context.Context, r services.UpdateRequest) (services.Object, error) {
	return services.Object{Key: r.Key, JSON: r.Content.JSON, Revision: s.object.Revision + 1}, nil
}

// place is a list or map field of a kind, which tests fill with n items.
type place struct {
	t    *catalogue.Type
	path []*step
	name string // of the definition and the field
}

// step is one field on the way to a place.
type step struct {
	field string
	s     *spec.Schema
}

// grown returns an object of the kind with n items in the place. If alike is set, all
// items are equal.
func (p *place) grown(g *generator, n int, alike bool) map[string]any {
	object := map[string]any{"apiVersion": p.t.APIVersion(), "kind": p.t.Kind}
	at := object
	for i, s := range p.path {
		if i == len(p.path)-1 {
			at[s.field] = g.many(s.s, n, alike)
			break
		}
		below := map[string]any{}
		if list := g.resolve(s.s); list.Items != nil {
			at[s.field] = []any{below}
		} else {
			at[s.field] = below
		}
		at = below
	}
	metadata := tree.Object(object, "metadata")
	metadata["name"], metadata["uid"], metadata["resourceVersion"] = "grown", "u", "1"
	if p.t.Namespaced {
		metadata["namespace"] = "shop"
	}
	return object
}

// generator generates values that match schemas.
type generator struct {
	definitions catalogue.Definitions
	// set is the value of booleans.
	set bool
}

func (g *generator) resolve(s *spec.Schema) *spec.Schema {
	for range 10 {
		ref := s.Ref.String()
		if ref == "" && len(s.AllOf) == 1 {
			s = &s.AllOf[0]
			continue
		}
		if ref == "" {
			return s
		}
		s = g.definitions.Get(ref[strings.LastIndex(ref, "/")+1:])
	}
	return s
}

// many returns a list or map of n values.
func (g *generator) many(s *spec.Schema, n int, alike bool) any {
	s = g.resolve(s)
	number := func(i int) int {
		if alike {
			return 0
		}
		return i
	}
	if s.Items != nil && s.Items.Schema != nil {
		list := make([]any, n)
		for i := range list {
			list[i] = g.value(s.Items.Schema, number(i))
		}
		return list
	}
	m := make(map[string]any, n)
	for i := range n {
		m[fmt.Sprintf("example.com/k%d", i)] = g.value(s.AdditionalProperties.Schema, number(i))
	}
	return m
}

// value returns the i-th value of a schema. An object has its scalar fields only.
func (g *generator) value(s *spec.Schema, i int) any {
	s = g.resolve(s)
	switch {
	case s.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	case s.Format == "int-or-string", s.Type.Contains("integer"):
		return int64(i%60000 + 1)
	case s.Type.Contains("number"):
		return 1.5
	case s.Type.Contains("boolean"):
		return g.set
	case s.Format == "byte":
		return "YQ=="
	case s.Type.Contains("string"):
		return fmt.Sprintf("v%d", i)
	case s.Items != nil:
		return []any{g.value(s.Items.Schema, i)}
	case len(s.Properties) > 0:
		m := map[string]any{}
		for name := range s.Properties {
			property := s.Properties[name]
			if p := g.resolve(&property); len(p.Properties) == 0 && p.Items == nil && p.AdditionalProperties == nil && (g.set || !p.Type.Contains("boolean")) {
				if len(m) < 5 || p.Type.Contains("boolean") || slices.Contains([]string{"name", "key", "operator", "type", "uid", "port"}, name) {
					m[name] = g.value(p, i)
				}
			}
		}
		return m
	}
	return map[string]any{}
}

// places returns every list and map field of every kind, each definition's field once.
func (g *generator) places(types *catalogue.Catalogue) (all []*place) {
	seen := map[string]bool{}
	for _, group := range types.Groups() {
		for _, version := range group.Versions {
			for _, t := range version.Types {
				if !t.Virtual && slices.Contains(t.Verbs, "update") && t.Schema() != nil {
					all = append(all, g.below(&place{t: t}, t.Schema(), t.Definition, seen)...)
				}
			}
		}
	}
	return all
}

func (g *generator) below(at *place, s *spec.Schema, definition string, seen map[string]bool) (all []*place) {
	if len(at.path) > 12 {
		return nil
	}
	for name := range s.Properties {
		property := s.Properties[name]
		id := definition + "." + name
		if seen[id] || name == "managedFields" {
			continue
		}
		seen[id] = true
		field := g.resolve(&property)
		here := &place{t: at.t, path: append(slices.Clone(at.path), &step{name, field}), name: id}
		items, of := field, property.Ref.String()
		switch {
		case field.Items != nil && field.Items.Schema != nil:
			all = append(all, here)
			items, of = g.resolve(field.Items.Schema), field.Items.Schema.Ref.String()
		case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
			all = append(all, here)
			continue
		}
		if of == "" && len(property.AllOf) == 1 {
			of = property.AllOf[0].Ref.String()
		}
		if of == "" {
			of = id
		}
		all = append(all, g.below(here, items, of, seen)...)
	}
	return all
}

// exercise returns a function that updates an object that differs slightly from object
// through all steps of a write, and encodes the result in all forms.
func exercise(t testing.TB, c *client, ty *catalogue.Type, object, live map[string]any) func() {
	stored, err := tree.Encode(live)
	if err != nil {
		t.Fatal(err)
	}
	body, err := tree.Encode(object)
	if err != nil {
		t.Fatal(err)
	}
	path := "/apis/" + ty.Group + "/" + ty.Version
	if ty.Group == "" {
		path = "/api/" + ty.Version
	}
	if ty.Namespaced {
		path += "/namespaces/shop"
	}
	path += "/" + ty.Resource + "/grown"
	return func() {
		c.handlers.Store.(*oneObject).object = services.Object{UID: "u", Revision: 1, JSON: stored}
		for _, sub := range []string{"", "/status"} {
			if sub != "" && (ty.Subresources["status"] == nil || object["status"] == nil) {
				continue
			}
			_ = c.send(t, http.MethodPut, path+sub, string(body)) // validation rejects most objects, at its full cost
		}
		for _, accept := range []string{"application/vnd.kubernetes.protobuf", "application/json;as=Table;g=meta.k8s.io;v=v1"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Header.Set("Accept", accept)
			form, err := c.handlers.Codec.Negotiate(r, ty, wire.Object)
			if err != nil {
				continue
			}
			req := &request.Request{Request: r, Audit: &audit.Record{}}
			if _, err := req.Identify(c.engine); err != nil {
				t.Fatal(err)
			}
			_ = reads.Reply{Object: services.Object{JSON: body}, Form: form, Status: http.StatusOK}.Send(httptest.NewRecorder(), req, c.handlers.Codec)
		}
	}
}

// send is do without decoding the response.
func (c *client) send(t testing.TB, method, path, body string) error {
	media := "application/json"
	switch method {
	case http.MethodPatch:
		media = "application/merge-patch+json"
	case "STRATEGIC":
		method, media = http.MethodPatch, "application/strategic-merge-patch+json"
	case "APPLY":
		method, media = http.MethodPatch, "application/apply-patch+yaml"
	case "JSONPATCH":
		method, media = http.MethodPatch, "application/json-patch+json"
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", media)
	req := &request.Request{Request: r, User: services.UserInfo{Name: "tester"}, Audit: &audit.Record{}}
	if _, err := req.Identify(c.engine); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c.handlers.Write(httptest.NewRecorder(), req)
}

// listsWithRules returns suffixes of the names of lists that have their own validation rules.
func listsWithRules() []string {
	return []string{
		"ObjectMeta.ownerReferences", "ObjectMeta.finalizers", ".Container.ports", ".Container.env", ".Container.volumeMounts",
		".PodSpec.containers", ".PodSpec.volumes", ".PodSpec.tolerations", ".PodSpec.topologySpreadConstraints", ".PodSpec.hostAliases",
		".ServiceSpec.ports", ".ServiceSpec.clusterIPs", ".NodeSpec.taints", ".IngressSpec.rules",
		".CertificateSigningRequestStatus.conditions", ".CustomResourceDefinitionSpec.versions", ".ClusterRole.rules",
	}
}

// TestCostGrowsWithSize doubles lists and maps of all kinds: the cost of no step of a write
// may grow quadratically. It tests the lists with validation rules and every eighth of the
// others, or those that the environment variable GROWTH selects: all, or a part of a name.
func TestCostGrowsWithSize(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	c := newClient(t, &oneObject{}, "10.0.0.0/24")
	g := &generator{definitions: c.engine.Types.Definitions()}
	all := g.places(c.engine.Types)
	slices.SortFunc(all, func(a, b *place) int { return strings.Compare(a.name, b.name) })
	if len(all) < 300 {
		t.Fatalf("only %d lists and maps", len(all))
	}
	tried := 0
	for i, p := range all {
		switch only := os.Getenv("GROWTH"); {
		case only == "" && i%24 != 0 && !slices.ContainsFunc(listsWithRules(), func(part string) bool { return strings.HasSuffix(p.name, part) }) || only != "" && only != "all" && !strings.Contains(p.name, only):
			continue
		}
		tried++
		for _, alike := range []bool{false, true} {
			g.set = alike
			if last := p.path[len(p.path)-1].s; alike && last.Items == nil {
				continue // the keys of a map are all different
			}
			ratio, bad := growth.Superlinear(growth.Sizes{From: 700, Most: 20_000}, func(n int) func() {
				object, live := p.grown(g, n, alike), p.grown(g, n, alike)
				tree.Object(object, "metadata")["labels"] = map[string]any{"a": "b"}
				return exercise(t, c, p.t, object, live)
			})
			if bad {
				t.Errorf("%s %s %s (alike: %v): the cost grows %.1f times when it doubles", p.t.APIVersion(), p.t.Kind, p.name, alike, ratio)
			}
		}
	}
	t.Logf("%d of %d lists and maps", tried, len(all))
}
