package openapi_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/openapi"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// builder returns a builder of the documents of all versions of a release.
func builder(t *testing.T, r release.Release, v vocabulary.Vocabulary) *openapi.Builder {
	t.Helper()
	all, err := runtimeconfig.Parse("api/all=true")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.New(catalogue.Options{Vocabulary: v, Release: r, RuntimeConfig: all})
	if err != nil {
		t.Fatal(err)
	}
	return &openapi.Builder{Catalogue: c, Vocabulary: v, Release: r, Version: "v" + r.Patch(), CBOR: true}
}

func all(parts map[string]openapi.Part) []openapi.Part { return slices.Collect(maps.Values(parts)) }

func encoded(t *testing.T, document any) []byte {
	t.Helper()
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestDocumentsAreWhole: all documents of both releases can be parsed strictly; in both
// vocabularies all their references lead to something, and no operation id occurs twice.
func TestDocumentsAreWhole(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		for _, v := range []vocabulary.Vocabulary{vocabulary.K8s(), vocabulary.Platform()} {
			t.Run(r.String()+"/"+v.Name, func(t *testing.T) {
				b := builder(t, r, v)
				parts := b.Parts()
				whole := encoded(t, b.V2(all(parts)...))
				strict := v.Name == vocabulary.K8s().Name // parsing is slow
				if strict {
					if _, err := openapi_v2.ParseDocument(whole); err != nil {
						t.Error(err)
					}
				}
				closed(t, "v2", whole)
				ids := map[string]string{}
				for name, part := range parts {
					document := b.V3(part)
					raw := encoded(t, document)
					if strict {
						if _, err := openapi_v3.ParseDocument(raw); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
					closed(t, name, raw)
					for path, item := range document.Paths.Paths {
						for _, o := range []*spec3.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete, item.Head, item.Options} {
							if o == nil {
								continue
							}
							if other, taken := ids[o.OperationId]; taken {
								t.Errorf("%s and %s have an operation %s", path, other, o.OperationId)
							}
							ids[o.OperationId] = path
						}
					}
				}
				if len(ids) < 1000 {
					t.Errorf("%d operations", len(ids))
				}
			})
		}
	}
}

// closed reports references of a document that lead nowhere.
func closed(t *testing.T, name string, raw []byte) {
	t.Helper()
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				at := document
				for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					members, _ := at.(map[string]any)
					at = members[part]
				}
				if at == nil {
					t.Errorf("%s: %s leads nowhere", name, ref)
				}
			}
			for _, below := range v {
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		}
	}
	walk(document)
}

// part returns the parsed v3 document of a part of 1.36.
func part(t *testing.T, name string) *spec3.OpenAPI {
	t.Helper()
	b := builder(t, release.V136, vocabulary.K8s())
	described, ok := b.Parts()[name]
	if !ok {
		t.Fatalf("no part %s", name)
	}
	var document spec3.OpenAPI
	if err := json.Unmarshal(encoded(t, b.V3(described)), &document); err != nil {
		t.Fatal(err)
	}
	return &document
}

// TestDefaults: fields that are no pointers have the default that their zero value is, beside a
// reference in allOf; documents of version 2 and of 1.21 do not have them.
func TestDefaults(t *testing.T) {
	schemas := part(t, "api/v1").Components.Schemas
	const core, meta = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
	for field, want := range map[string]any{
		"Pod.metadata": map[string]any{}, "PodList.items[]": map[string]any{}, "Container.name": "", "ContainerPort.protocol": "TCP", "ContainerPort.containerPort": 0.,
		"ContainerStatus.ready": false, "Container.args[]": "", "ReplicationControllerSpec.replicas": 1., "LocalObjectReference.name": "", "ConfigMap.data{}": "",
		"PodSpec.securityContext": nil, "PodSpec.nodeName": nil, "Pod.kind": nil,
	} {
		definition, name, _ := strings.Cut(field, ".")
		p := schemas[core+definition].Properties[strings.TrimRight(name, "[]{}")]
		switch {
		case strings.HasSuffix(name, "[]"):
			p = *p.Items.Schema
		case strings.HasSuffix(name, "{}"):
			p = *p.AdditionalProperties.Schema
		}
		if !reflect.DeepEqual(p.Default, want) {
			t.Errorf("%s: %#v, want %#v", field, p.Default, want)
		}
		if p.Ref.String() != "" && (p.Default != nil || p.Description != "") {
			t.Errorf("%s has something beside its reference", field)
		}
	}
	if metadata := schemas[core+"Pod"].Properties["metadata"]; len(metadata.AllOf) != 1 || metadata.AllOf[0].Ref.String() != "#/components/schemas/"+meta+"ObjectMeta" {
		t.Errorf("metadata: %+v", metadata)
	}
	for _, r := range []release.Release{release.V121, release.V136} {
		b := builder(t, r, vocabulary.K8s())
		if raw := string(encoded(t, b.V2(all(b.Parts())...).Definitions)); strings.Contains(raw, `"default":{}`) || strings.Contains(raw, `"default":"TCP"`) {
			t.Errorf("version 2 of %s has defaults", r)
		}
	}
}

// TestClientsReadDocuments: the libraries with which clients compute field sets understand
// both versions.
func TestClientsReadDocuments(t *testing.T) {
	b := builder(t, release.V136, vocabulary.K8s())
	v2, err := openapi_v2.ParseDocument(encoded(t, b.V2(all(b.Parts())...)))
	if err != nil {
		t.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(v2)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := managedfields.NewGVKParser(models, false)
	if err != nil {
		t.Fatal(err)
	}
	typed := parser.Type(schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"})
	if typed == nil {
		t.Fatal("v2 has no IngressClass")
	}
	if _, err := typed.FromUnstructured(map[string]any{"spec": map[string]any{"controller": "a", "unknown": 1}}); err == nil {
		t.Error("an unknown field is no error")
	}
	v3, err := openapi_v3.ParseDocument(encoded(t, part(t, "apis/networking.k8s.io/v1")))
	if err != nil {
		t.Fatal(err)
	}
	models, err = proto.NewOpenAPIV3Data(v3)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := models.LookupModel("io.k8s.api.networking.v1.IngressClass").(*proto.Kind); !ok || m.Fields["spec"] == nil {
		t.Error("v3 has no IngressClass")
	}
	converter, err := managedfields.NewTypeConverter(part(t, "api/v1").Components.Schemas, false)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{
		"containers": []any{map[string]any{"name": "a", "ports": []any{map[string]any{"containerPort": int64(80)}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := pod.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	if want := `.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].containerPort`; !strings.Contains(set.String(), want) {
		t.Errorf("no %s in\n%s", want, set)
	}
}

// TestPathsOfAType: a type has the paths, operations and parameters of the reference server, but for
// OPTIONS of proxies.
func TestPathsOfAType(t *testing.T) {
	const lists = "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch"
	const deletes = "dryRun gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents propagationPolicy"
	core := part(t, "api/v1").Paths.Paths
	for path, want := range map[string]map[string]string{
		"/": {"get": "getCoreV1APIResources: "},
		"/pods": {"get": "listCoreV1PodForAllNamespaces: ",
			"path": "allowWatchBookmarks continue fieldSelector labelSelector limit pretty resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch"},
		"/namespaces/{namespace}/pods": {"path": "namespace pretty", "get": "listCoreV1NamespacedPod: " + lists,
			"post":   "createCoreV1NamespacedPod: dryRun fieldManager fieldValidation; body */* required",
			"delete": "deleteCoreV1CollectionNamespacedPod: continue dryRun fieldSelector gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential labelSelector limit orphanDependents propagationPolicy resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds; body */*"},
		"/namespaces/{namespace}/pods/{name}": {"path": "name namespace pretty", "get": "readCoreV1NamespacedPod: ",
			"put":    "replaceCoreV1NamespacedPod: dryRun fieldManager fieldValidation; body */* required",
			"delete": "deleteCoreV1NamespacedPod: " + deletes + "; body */*",
			"patch":  "patchCoreV1NamespacedPod: dryRun fieldManager fieldValidation force; body application/apply-patch+cbor application/apply-patch+yaml application/json-patch+json application/merge-patch+json application/strategic-merge-patch+json required"},
		"/namespaces/{namespace}/pods/{name}/eviction": {"path": "dryRun fieldManager fieldValidation name namespace pretty", "post": "createCoreV1NamespacedPodEviction: ; body */* required"},
		"/namespaces/{namespace}/pods/{name}/exec":     {"path": "command container name namespace stderr stdin stdout tty", "get": "connectCoreV1GetNamespacedPodExec: ", "post": "connectCoreV1PostNamespacedPodExec: "},
		"/nodes/{name}/proxy/{path}": {"path": "name path path", "get": "connectCoreV1GetNodeProxyWithPath: ", "put": "connectCoreV1PutNodeProxyWithPath: ", "post": "connectCoreV1PostNodeProxyWithPath: ",
			"patch": "connectCoreV1PatchNodeProxyWithPath: ", "delete": "connectCoreV1DeleteNodeProxyWithPath: ", "head": "connectCoreV1HeadNodeProxyWithPath: "},
		"/watch/nodes/{name}": {"get": "watchCoreV1Node: ",
			"path": "allowWatchBookmarks continue fieldSelector labelSelector limit name pretty resourceVersion resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch"},
		"/watch/componentstatuses": nil,
	} {
		if got := described(core["/api/v1"+path]); !maps.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", path, got, want)
		}
	}
}

// described lists the parameters of a path, and its operations with their parameters and body.
func described(path *spec3.Path) map[string]string {
	if path == nil {
		return nil
	}
	names := func(parameters []*spec3.Parameter) string {
		list := make([]string, len(parameters))
		for i, p := range parameters {
			list[i] = p.Name
		}
		return strings.Join(list, " ")
	}
	found := map[string]string{}
	if len(path.Parameters) > 0 {
		found["path"] = names(path.Parameters)
	}
	for method, o := range map[string]*spec3.Operation{"get": path.Get, "put": path.Put, "post": path.Post, "patch": path.Patch, "delete": path.Delete, "head": path.Head, "options": path.Options} {
		if o == nil {
			continue
		}
		found[method] = o.OperationId + ": " + names(o.Parameters)
		if o.RequestBody == nil {
			continue
		}
		found[method] += "; body " + strings.Join(slices.Sorted(maps.Keys(o.RequestBody.Content)), " ")
		if o.RequestBody.Required {
			found[method] += " required"
		}
	}
	return found
}

// TestSharedKinds: a schema that all group versions have names those of the document only.
func TestSharedKinds(t *testing.T) {
	const name = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
	kinds := part(t, "apis/apps/v1").Components.Schemas[name].Extensions["x-kubernetes-group-version-kind"]
	want := []any{map[string]any{"group": "", "version": "v1", "kind": "DeleteOptions"}, map[string]any{"group": "apps", "version": "v1", "kind": "DeleteOptions"}}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("v3: %v", kinds)
	}
	b := builder(t, release.V136, vocabulary.K8s())
	all, _ := b.V2(slices.Collect(maps.Values(b.Parts()))...).Definitions[name].Extensions["x-kubernetes-group-version-kind"].([]any)
	if len(all) < 20 {
		t.Errorf("v2: %v", all)
	}
}

// TestSharedParameters: parameters of version 2 are shared, but for those that kubectl searches
// and those that belong to a type. Documents of 1.21 share none.
func TestSharedParameters(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
	plain := func(parameters []spec.Parameter) (names []string) {
		for _, p := range parameters {
			if p.Ref.String() == "" {
				names = append(names, p.Name)
			}
		}
		return names
	}
	for r, want := range map[release.Release][]string{
		release.V136: {"body", "dryRun", "fieldValidation"}, release.V121: {"body", "dryRun", "fieldManager", "fieldValidation"},
	} {
		b := builder(t, r, vocabulary.K8s())
		document := b.V2(all(b.Parts())...)
		if got := plain(document.Paths.Paths[path].Put.Parameters); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", r, got, want)
		}
		if shared := len(document.Parameters); (shared == 0) != (r == release.V121) {
			t.Errorf("%s shares %d parameters", r, shared)
		}
	}
}

// TestVersionShown: documents show the emulated version, those of older releases the patch.
func TestVersionShown(t *testing.T) {
	for r, want := range map[release.Release]string{release.V121: "v" + release.V121.Patch(), release.V136: "1.36"} {
		b := builder(t, r, vocabulary.K8s())
		if got := b.V3(b.Parts()["version"]).Info.Version; got != want {
			t.Errorf("%s: %s", r, got)
		}
	}
}
