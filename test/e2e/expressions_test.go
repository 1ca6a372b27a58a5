package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

const ruledDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: routes, singular: route, kind: Route, listKind: RouteList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "self.hosts.all(h, h.endsWith('.example'))", message: hosts must end in .example, reason: FieldValueForbidden, fieldPath: .hosts}
            - {rule: "!has(oldSelf.class) || self.class == oldSelf.class", message: class is immutable}
            properties:
              class: {type: string, maxLength: 20}
              hosts: {type: array, maxItems: 16, items: {type: string, maxLength: 50}}`

// TestExpressions has rules of custom types, policies with parameters and match conditions in
// release 1.36, by a client.
func TestExpressions(t *testing.T) {
	t.Parallel()
	c := startAllInOne(t, vocabulary.K8s(), "--emulated-version=1.36").Cluster
	client := c.Client(t)
	namespace := newNamespace(t, client)
	put := func(group, version, resource, in, text string) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		_, err := client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).Namespace(in).Create(t.Context(), object, metav1.CreateOptions{})
		return err
	}
	refused := func(what string, err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wrong := strings.Replace(ruledDefinition, "self.hosts.all", "self.host.all", 1)
	refused("a wrong rule", put("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", wrong), "undefined field 'host'")
	if err := put("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", ruledDefinition); err != nil {
		t.Fatal(err)
	}
	route := func(name, hosts string) error {
		return put("example.com", "v1", "routes", namespace, "{apiVersion: example.com/v1, kind: Route, metadata: {name: "+name+"}, spec: {class: a, hosts: ["+hosts+"]}}")
	}
	eventually(t, "a valid route is accepted", func() bool { return route("valid", "a.example") == nil })
	refused("a violation", route("invalid", "a.test"), "spec.hosts: Forbidden: hosts must end in .example")
	_, err := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}).Namespace(namespace).
		Patch(t.Context(), "valid", "application/merge-patch+json", []byte(`{"spec":{"class":"b"}}`), metav1.PatchOptions{})
	refused("a change of what is immutable", err, "class is immutable")

	configMap := func(name, data string) error {
		return put("", "v1", "configmaps", namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: "+data+"}")
	}
	if err := configMap("sizes", `{max: "5"}`); err != nil {
		t.Fatal(err)
	}
	for _, object := range []struct{ resource, text string }{
		{"validatingadmissionpolicies", `{metadata: {name: sizes}, spec: {paramKind: {apiVersion: v1, kind: ConfigMap},
			matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]},
			matchConditions: [{name: sized, expression: "has(object.data) && 'size' in object.data"}],
			variables: [{name: size, expression: "int(object.data['size'])"}],
			validations: [{expression: "variables.size <= int(params.data.max)", messageExpression: "'size must be at most ' + params.data.max"}]}}`},
		{"validatingadmissionpolicybindings", `{metadata: {name: sizes}, spec: {policyName: sizes, validationActions: [Deny], paramRef: {name: sizes, namespace: ` + namespace + `, parameterNotFoundAction: Deny}}}`},
		{"validatingwebhookconfigurations", `{metadata: {name: never}, webhooks: [{name: never.example.com, clientConfig: {url: "https://127.0.0.1:1/"}, admissionReviewVersions: [v1], sideEffects: None,
			rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}], matchConditions: [{name: named, expression: "object.metadata.name == 'asked'"}]}]}`},
	} {
		kind := map[string]string{"validatingadmissionpolicies": "ValidatingAdmissionPolicy", "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
			"validatingwebhookconfigurations": "ValidatingWebhookConfiguration"}[object.resource]
		text := "{apiVersion: admissionregistration.k8s.io/v1, kind: " + kind + ", " + strings.TrimPrefix(object.text, "{")
		if err := put("admissionregistration.k8s.io", "v1", object.resource, "", text); err != nil {
			t.Fatalf("%s: %v", object.resource, err)
		}
	}
	eventually(t, "the policy applies", func() bool {
		err := configMap("large-"+strings.ToLower(time.Now().Format("150405.000000000")), `{size: "7"}`)
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'sizes' with binding 'sizes' denied request: size must be at most 5")
	})
	if err := configMap("small", `{size: "3"}`); err != nil {
		t.Error(err)
	}
	testMutatingPolicy(t, client, put, namespace)
	eventually(t, "the webhook is called", func() bool {
		err := configMap("asked", `{}`)
		return err != nil && strings.Contains(err.Error(), "failed calling webhook")
	})
}

// testMutatingPolicy has a policy that merges a container and labels into pods.
func testMutatingPolicy(t *testing.T, client dynamic.Interface, put func(group, version, resource, in, text string) error, namespace string) {
	t.Helper()
	const expression = "Object{metadata: Object.metadata{labels: {'policy': request.userInfo.username}}, spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 'side:1'}]}}"
	const patch = "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'name': object.metadata.labels.policy}}]"
	const policy = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: sides}, spec: {reinvocationPolicy: IfNeeded,
		matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]},
		mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "` + expression + `"}}, {patchType: JSONPatch, jsonPatch: {expression: "` + patch + `"}}]}}`
	if err := put("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "", strings.Replace(policy, "Object{metadata", "Thing{metadata", 1)); err == nil ||
		!strings.Contains(err.Error(), "spec.mutations[0].applyConfiguration.expression: Invalid value") {
		t.Errorf("a wrong policy: %v", err)
	}
	for resource, text := range map[string]string{"mutatingadmissionpolicies": policy,
		"mutatingadmissionpolicybindings": `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: sides}, spec: {policyName: sides}}`} {
		if err := put("admissionregistration.k8s.io", "v1", resource, "", text); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the policy applies", func() bool {
		name := "pod-" + strings.ToLower(time.Now().Format("150405.000000000"))
		if err := put("", "v1", "pods", namespace, "{apiVersion: v1, kind: Pod, metadata: {name: "+name+"}, spec: {containers: [{name: main, image: a}]}}"); err != nil {
			return false // the account of the namespace may be missing
		}
		pod, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		return len(containers) == 2 && pod.GetLabels()["policy"] != "" && pod.GetAnnotations()["name"] == pod.GetLabels()["policy"]
	})
}
