// Package e2e tests the suite as a whole: the same bodies run against all services in one
// process and against each service as a separate process.
//
// The tests use only the API, like clients. The bodies serve "Endpoints", "Watch
// procedure", "Errors" and "Health" of the specification.
package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/test/e2e/cluster"
	"github.com/portico-platform/portico/test/e2e/definitions"
	"github.com/portico-platform/portico/test/e2e/delegates"
	"github.com/portico-platform/portico/test/e2e/replacing"
	"github.com/portico-platform/portico/test/e2e/rights"
)

// TestBodies runs every body against a cluster.
func TestBodies(t *testing.T, c *cluster.Cluster) {
	bodies := []struct {
		name string
		run  func(t *testing.T, c *cluster.Cluster)
	}{
		{"Health", health},
		{"Discovery", discovery},
		{"OwnNamespaces", ownNamespaces},
		{"Objects", objects},
		{"Lists", lists},
		{"LargeChunks", largeChunks},
		{"Watch", watchChanges},
		{"WatchFromTheStart", watchFromTheStart},
		{"Refusals", refusals},
		{"Large", large},
		{"Strangers", strangers},
		{"DeletedNamespace", deletedNamespace},
		{"DeletedOwners", deletedOwners},
		{"NamespaceDefaults", namespaceDefaults},
		{"CrowdedObject", crowdedObject},
		{"GeneratedNames", generatedNames},
		{"ConditionalWrites", conditionalWrites},
		{"FixedObjects", fixedObjects},
		{"Replacements", replacing.Replacements},
		{"DryRuns", dryRuns},
		{"HeldObject", heldObject},
		{"DeleteOptions", deleteOptions},
		{"Halves", halves},
		{"UnknownFields", unknownFields},
		{"TwoVersions", twoVersions},
		{"NewEvents", newEvents},
		{"ApprovalByDefinition", definitions.Approval},
		{"DeletionByDefinition", definitions.Deletion},
		{"OwnObjects", definitions.OwnObjects},
		{"RightsOfRoles", rights.Roles},
		{"RightsOfWebhooks", rights.Webhooks},
		{"WebhookVersions", rights.WebhookVersions},
		{"AdmissionServices", delegates.Services},
		{"RightsOfImpersonation", rights.Impersonation},
		{"RightsOfAccounts", rights.Accounts},
		{"RightsOfCertificates", rights.Certificates},
		{"RightsOfObjects", rights.Objects},
		{"RightsInNamespaces", rights.Permitted},
	}
	for _, body := range bodies {
		t.Run(body.name, func(t *testing.T) {
			t.Parallel()
			body.run(t, c)
		})
	}
}

// sample is an object of one type, as small as its type allows.
type sample struct {
	resource   schema.GroupVersionResource
	namespaced bool
	object     map[string]any // without metadata
	path       []string       // of a field to change
}

func samples() []sample {
	labels := map[string]any{"app": "web"}
	return []sample{
		{configMaps(), true, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "first"}}, []string{"data", "key"}},
		{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, true, map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
				},
			},
		}, []string{"spec", "template", "spec", "schedulerName"}},
		{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false, map[string]any{"apiVersion": "v1", "kind": "Node"}, []string{"spec", "providerID"}},
		{namespaces(), false, map[string]any{"apiVersion": "v1", "kind": "Namespace"}, []string{"metadata", "labels", "tier"}},
	}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// in returns the client for the sample's type in a namespace, where it has one.
func (s sample) in(client dynamic.Interface, namespace string) dynamic.ResourceInterface {
	if s.namespaced {
		return client.Resource(s.resource).Namespace(namespace)
	}
	return client.Resource(s.resource)
}

// named returns the sample with a name.
func (s sample) named(name string) *unstructured.Unstructured {
	o := (&unstructured.Unstructured{Object: s.object}).DeepCopy()
	o.SetName(name)
	return o
}

// newNamespace makes a namespace for one test and returns its name.
func newNamespace(t *testing.T, client dynamic.Interface) string {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	o.SetGenerateName("e2e-")
	made, err := client.Resource(namespaces()).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(made.GetName(), "e2e-") || len(made.GetName()) <= len("e2e-") {
		t.Fatalf("generateName made the name %q", made.GetName())
	}
	return made.GetName()
}

// ours selects the objects of the bodies: workers also create ConfigMaps in new
// namespaces.
const ours = "made-by=e2e"

func configMap(name, value string) *unstructured.Unstructured {
	o := samples()[0].named(name)
	o.SetLabels(map[string]string{"made-by": "e2e"})
	o.Object["data"] = map[string]any{"key": value}
	return o
}

func value(o *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(o.Object, "data", "key")
	return v
}
