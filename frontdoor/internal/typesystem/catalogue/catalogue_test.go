package catalogue

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

func build(t testing.TB, v vocabulary.Vocabulary, settings ...string) *Catalogue {
	t.Helper()
	config, err := runtimeconfig.Parse(settings...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Vocabulary: v, RuntimeConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inBoth runs a test in both vocabularies.
func inBoth(t *testing.T, test func(t *testing.T, v vocabulary.Vocabulary, c *Catalogue)) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		t.Run(v.Name, func(t *testing.T) { test(t, v, build(t, v)) })
	}
}

var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func TestTypes(t *testing.T) {
	inBoth(t, func(t *testing.T, v vocabulary.Vocabulary, c *Catalogue) {
		for _, want := range []struct {
			group, version, resource string // short group
			kind                     string
			namespaced               bool
			verbs                    []string
			subresources             string
			stored                   string
			key                      resource.GroupResource
			names                    kinds.NameRule
		}{
			{"", "v1", "pods", "Pod", true, allVerbs, "attach binding ephemeralcontainers eviction exec log portforward proxy status", "v1", resource.GroupResource{Resource: "pods"}, kinds.NameSubdomain},
			{"", "v1", "namespaces", "Namespace", false, without("deletecollection"), "finalize status", "v1", resource.GroupResource{Resource: "namespaces"}, kinds.NameLabel},
			{"", "v1", "services", "Service", true, without("deletecollection"), "proxy status", "v1", resource.GroupResource{Resource: "services"}, kinds.NameLabel1035},
			{"", "v1", "serviceaccounts", "ServiceAccount", true, allVerbs, "token", "v1", resource.GroupResource{Resource: "serviceaccounts"}, kinds.NameSubdomain},
			{"", "v1", "bindings", "Binding", true, []string{"create"}, "", "v1", resource.GroupResource{Resource: "bindings"}, kinds.NameSubdomain},
			{"", "v1", "componentstatuses", "ComponentStatus", false, []string{"get", "list"}, "", "v1", resource.GroupResource{Resource: "componentstatuses"}, kinds.NameSubdomain},
			{"", "v1", "events", "Event", true, allVerbs, "", "v1", resource.GroupResource{Resource: "events"}, kinds.NamePathSegment},
			{"events.", "v1", "events", "Event", true, allVerbs, "", "v1", resource.GroupResource{Resource: "events"}, kinds.NameSubdomain},
			{"apps", "v1", "deployments", "Deployment", true, allVerbs, "scale status", "apps/v1", resource.GroupResource{Group: "apps", Resource: "deployments"}, kinds.NameSubdomain},
			{"batch", "v1", "cronjobs", "CronJob", true, allVerbs, "status", "batch/v1", resource.GroupResource{Group: "batch", Resource: "cronjobs"}, kinds.NameSubdomain},
			{"autoscaling", "v2beta2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true, allVerbs, "status", "autoscaling/v1", resource.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, kinds.NameSubdomain},
			{"extensions", "v1beta1", "ingresses", "Ingress", true, allVerbs, "status", v.Group("networking.") + "/v1", resource.GroupResource{Group: v.Group("networking."), Resource: "ingresses"}, kinds.NameSubdomain},
			{"certificates.", "v1beta1", "certificatesigningrequests", "CertificateSigningRequest", false, allVerbs, "approval status", v.Group("certificates.") + "/v1", resource.GroupResource{Group: v.Group("certificates."), Resource: "certificatesigningrequests"}, kinds.NamePathSegment},
			{"rbac.authorization.", "v1", "roles", "Role", true, allVerbs, "", v.Group("rbac.authorization.") + "/v1", resource.GroupResource{Group: v.Group("rbac.authorization."), Resource: "roles"}, kinds.NamePathSegment},
			{"authorization.", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", true, []string{"create"}, "", v.Group("authorization.") + "/v1", resource.GroupResource{Group: v.Group("authorization."), Resource: "localsubjectaccessreviews"}, kinds.NameSubdomain},
			{"apiextensions.", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, allVerbs, "status", v.Group("apiextensions.") + "/v1", resource.GroupResource{Group: v.Group("apiextensions."), Resource: "customresourcedefinitions"}, kinds.NameSubdomain},
			{"apiregistration.", "v1", "apiservices", "APIService", false, allVerbs, "status", v.Group("apiregistration.") + "/v1", resource.GroupResource{Group: v.Group("apiregistration."), Resource: "apiservices"}, kinds.NameChecked},
		} {
			got, ok := c.Lookup(v.Group(want.group), want.version, want.resource)
			if !ok {
				t.Errorf("no %s %s of %s", want.version, want.resource, want.group)
				continue
			}
			subresources := strings.Join(slices.Sorted(maps.Keys(got.Subresources)), " ")
			if got.Kind != want.kind || got.Namespaced != want.namespaced || !slices.Equal(got.Verbs, want.verbs) || subresources != want.subresources ||
				got.Stored.APIVersion() != want.stored || got.Key != want.key || got.NameRule != want.names || got.Schema() == nil ||
				got.Virtual != slices.Equal(want.verbs, []string{"create"}) {
				t.Errorf("%s %s: %+v, stored as %s", got.APIVersion(), got.Resource, got, got.Stored.APIVersion())
			}
			if byKind, _ := c.ByKind(got.Group, got.Version, got.Kind); byKind != got {
				t.Errorf("%s %s is not found by its kind", got.APIVersion(), got.Kind)
			}
			if stored := c.Stored(got.GroupResource()); stored != got.Stored && !got.Virtual {
				t.Errorf("%s is stored as %v", got.Resource, stored)
			}
		}
	})
}

func without(verb string) []string {
	return slices.DeleteFunc(slices.Clone(allVerbs), func(v string) bool { return v == verb })
}

func TestSubresources(t *testing.T) {
	inBoth(t, func(t *testing.T, v vocabulary.Vocabulary, c *Catalogue) {
		for path, want := range map[string]Subresource{
			"/pods/eviction":          {Name: "eviction", Group: "policy", Version: "v1beta1", Kind: "Eviction", Verbs: []string{"create"}},
			"/pods/binding":           {Name: "binding", Kind: "Binding", Verbs: []string{"create"}},
			"/pods/log":               {Name: "log", Kind: "Pod", Verbs: []string{"get"}},
			"/pods/exec":              {Name: "exec", Kind: "PodExecOptions", Verbs: []string{"create", "get"}, Connect: true},
			"/nodes/proxy":            {Name: "proxy", Kind: "NodeProxyOptions", Verbs: []string{"create", "delete", "get", "patch", "update"}, Connect: true},
			"/serviceaccounts/token":  {Name: "token", Group: v.Group("authentication."), Version: "v1", Kind: "TokenRequest", Verbs: []string{"create"}},
			"/namespaces/finalize":    {Name: "finalize", Kind: "Namespace", Verbs: []string{"update"}},
			"apps/deployments/scale":  {Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: []string{"get", "patch", "update"}},
			"apps/deployments/status": {Name: "status", Kind: "Deployment", Verbs: []string{"get", "patch", "update"}},
		} {
			parts := strings.Split(path, "/")
			parent, ok := c.Lookup(parts[0], "v1", parts[1])
			if !ok {
				t.Fatalf("no %s", parts[1])
			}
			if got := parent.Subresources[parts[2]]; got == nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("%s: got %+v, want %+v", path, got, want)
			}
		}
		if definition, ok := c.Body("autoscaling", "v1", "Scale"); !ok || definition != v.Definitions+"api.autoscaling.v1.Scale" {
			t.Errorf("the schema of Scale is %q", definition)
		}
	})
}

func TestGroups(t *testing.T) {
	inBoth(t, func(t *testing.T, v vocabulary.Vocabulary, c *Catalogue) {
		var names []string
		for _, g := range c.Groups() {
			names = append(names, v.ShortGroup(g.Name))
			if strings.Contains(g.Versions[0].Version, "beta") && slices.ContainsFunc(g.Versions, func(gv GroupVersion) bool { return gv.Version == "v1" }) {
				t.Errorf("%s prefers %s", g.Name, g.Versions[0].Version)
			}
		}
		if len(names) != 23 || names[0] != "" || slices.Index(names, "extensions") < slices.Index(names, "networking.") {
			t.Errorf("groups: %q", names)
		}
	})
}

func TestEveryTypeIsWhole(t *testing.T) {
	inBoth(t, func(t *testing.T, v vocabulary.Vocabulary, c *Catalogue) {
		for _, g := range c.Groups() {
			for _, gv := range g.Versions {
				for _, x := range gv.Types {
					if x.Schema() == nil || x.Definition == "" || x.Singular == "" || x.Stored == nil {
						t.Errorf("%s %s is not whole: %+v", x.APIVersion(), x.Resource, x)
					}
					if x.Can("list") {
						if _, ok := c.Body(x.Group, x.Version, x.ListKind); !ok {
							t.Errorf("%s %s: there is no %s", x.APIVersion(), x.Resource, x.ListKind)
						}
					}
					if beta := strings.Contains(x.Version, "beta"); beta && x.Deprecation == nil && !slices.Contains(
						[]string{"csistoragecapacities", "flowschemas", "prioritylevelconfigurations", "horizontalpodautoscalers"}, x.Resource) {
						t.Errorf("%s %s is not deprecated", x.APIVersion(), x.Resource)
					}
				}
			}
		}
	})
}

// Paths of columns and selectable fields are in the schema.
func TestColumns(t *testing.T) {
	inBoth(t, func(t *testing.T, v vocabulary.Vocabulary, c *Catalogue) {
		for _, g := range c.Groups() {
			for _, x := range g.Versions[0].Types {
				for _, column := range x.TableColumns() {
					name, path := column.Computed()
					shows := name == "" || path != "" || name == kinds.CellAge || x.Resource == "configmaps" || x.Resource == "secrets"
					if shows && column.Description == "" {
						t.Errorf("%s: column %s has no description", x.Resource, column.Name)
					}
					if path != "" && c.field(x.Schema(), path) == nil {
						t.Errorf("%s: the schema has no %s", x.Resource, path)
					}
				}
				for _, field := range x.Selectable {
					if c.field(x.Stored.Schema(), "."+strings.Join(field.Path, ".")) == nil {
						t.Errorf("%s: the schema has no %v", x.Resource, field.Path)
					}
				}
			}
		}
	})
}

func TestDeprecationWarnings(t *testing.T) {
	c := build(t, vocabulary.Platform())
	for path, want := range map[string]string{
		"batch/v1beta1/cronjobs":                       "batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+; use batch/v1 CronJob",
		"rbac.authorization.platform.io/v1beta1/roles": "rbac.authorization.platform.io/v1beta1 Role is deprecated in v1.17+, unavailable in v1.22+; use rbac.authorization.platform.io/v1 Role",
		"policy/v1beta1/podsecuritypolicies":           "policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+",
		"/v1/componentstatuses":                        "v1 ComponentStatus is deprecated in v1.19+",
		"batch/v1/cronjobs":                            "",
	} {
		parts := strings.Split(path, "/")
		x, ok := c.Lookup(parts[0], parts[1], parts[2])
		if !ok || x.DeprecationWarning() != want {
			t.Errorf("%s: %v", path, x)
		}
	}
}

func TestRuntimeConfig(t *testing.T) {
	c := build(t, vocabulary.Platform(), "batch/v1=false", "apps/v1,policy/v1beta1/podsecuritypolicies=false,api/beta=false", "batch/v1beta1=true")
	for path, want := range map[string]bool{
		"batch/v1/jobs": false, "batch/v1beta1/cronjobs": true, "apps/v1/deployments": true,
		"policy/v1/poddisruptionbudgets": true, "policy/v1beta1/podsecuritypolicies": false, "networking.platform.io/v1beta1/ingresses": false,
	} {
		parts := strings.Split(path, "/")
		if _, ok := c.Lookup(parts[0], parts[1], parts[2]); ok != want {
			t.Errorf("%s is served: %v", path, ok)
		}
	}
	if stored := c.Stored(resource.GroupResource{Group: "batch", Resource: "jobs"}); stored == nil || stored.Version != "v1" {
		t.Errorf("jobs are no longer stored: %v", stored)
	}
	off := build(t, vocabulary.Platform(), "api/all=false,api/v1=true")
	if groups := off.Groups(); len(groups) != 1 || groups[0].Name != "" {
		t.Errorf("all but the core group switched off: %v", groups)
	}
}

func TestRuntimeConfigFaults(t *testing.T) {
	for setting, want := range map[string]string{
		"apps/v1=perhaps": `"apps/v1=perhaps"`, "=true": `"=true"`,
		"apps/v9": `"apps/v9"`, "certificates.k8s.io/v1=false": `"certificates.k8s.io/v1"`, "apps/v1/pods=true": `"apps/v1/pods"`,
	} {
		config, err := runtimeconfig.Parse(setting)
		if err == nil {
			_, err = New(Options{Vocabulary: vocabulary.Platform(), RuntimeConfig: config})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// Fields have the same owners in both vocabularies.
func TestConverter(t *testing.T) {
	inBoth(t, func(t *testing.T, v vocabulary.Vocabulary, c *Catalogue) {
		converter := c.Converter()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v.Group("networking.") + "/v1", "kind": "Ingress",
			"spec": map[string]any{"tls": []any{map[string]any{"secretName": "s"}}},
		}}
		value, err := converter.ObjectToTyped(object)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := value.ToFieldSet()
		if err != nil || !strings.Contains(fields.String(), ".spec.tls") || strings.Contains(fields.String(), "secretName") {
			t.Errorf("the list of tls is atomic, and the fields are %s, %v", fields, err)
		}
		service := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}},
		}}
		if value, err = converter.ObjectToTyped(service); err != nil {
			t.Fatal(err)
		}
		if fields, _ = value.ToFieldSet(); !strings.Contains(fields.String(), `.spec.ports[port=80,protocol="TCP"].port`) {
			t.Errorf("ports of a service are a map, and the fields are %s", fields)
		}
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"image": "a"}}},
		}}
		if value, err = converter.ObjectToTyped(pod); err != nil {
			t.Fatal(err)
		}
		if fields, _ = value.ToFieldSet(); !strings.Contains(fields.String(), `.spec.containers[name=""].image`) {
			t.Errorf("a container without a name has an empty one, and the fields are %s", fields)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		build(b, vocabulary.Platform())
	}
}

// BenchmarkDefinitions decodes all schemas, as a document with all types does.
func BenchmarkDefinitions(b *testing.B) {
	for b.Loop() {
		for name, s := range build(b, vocabulary.Platform()).Definitions().All() {
			if s == nil {
				b.Fatal(name)
			}
		}
	}
}

// TestLazyDefinitions: the schema of a custom type is made when it is needed first, and Read keeps none of its own.
func TestLazyDefinitions(t *testing.T) {
	made := 0
	widget := &Type{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Custom: true, Key: resource.GroupResource{Group: "example.com", Resource: "widgets", Custom: true}}
	widget.Stored = widget
	d := Lazy("example.com", "v1", "Widget", func() *spec.Schema {
		made++
		return spec.StringProperty()
	})
	widget.Describe("com.example.v1.Widget", d)
	c := build(t, vocabulary.K8s()).With(Surface{Types: []*Type{widget}, Definitions: Definitions{"com.example.v1.Widget": d}})
	if name, ok := c.Body("example.com", "v1", "Widget"); !ok || name != "com.example.v1.Widget" || made != 0 {
		t.Errorf("the definition of Widget is %q, %v, made %d times", name, ok, made)
	}
	first, own := c.Definitions().Read("com.example.v1.Widget")
	if second, _ := c.Definitions().Read("com.example.v1.Widget"); first == second || !own || made != 2 {
		t.Errorf("Read keeps the schema: made %d times", made)
	}
	kept := widget.Schema()
	if read, own := c.Definitions().Read("com.example.v1.Widget"); kept != c.Definitions().Get("com.example.v1.Widget") || kept != read || own || made != 3 {
		t.Errorf("Get keeps no schema: made %d times", made)
	}
}
