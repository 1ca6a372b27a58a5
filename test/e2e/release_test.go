package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	stockdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestLaterRelease works with stock typed clients on the kinds that are new or have new
// fields in release 1.36, in JSON and in Protobuf.
func TestLaterRelease(t *testing.T) {
	t.Parallel()
	c := startAllInOne(t, vocabulary.K8s(), "--emulated-version=1.36", "--legacy-service-account-token-clean-up-period="+cleanUpPeriod.String()).Cluster
	content, err := os.ReadFile("testdata/release-1.36.yaml")
	if err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t, c.Client(t))
	for form, config := range map[string]*rest.Config{"JSON": c.Config(), "Protobuf": protobuf(c)} {
		for i, text := range strings.Split(string(content), "\n---\n") {
			var head metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(text), &head); err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%s/%s %d", form, head.Kind, i), func(t *testing.T) { livesThrough(t, c, config, text, namespace) })
		}
	}
	t.Run("Subresources", func(t *testing.T) { resizes(t, c, namespace) })
	t.Run("Identity", func(t *testing.T) { identifies(t, c) })
	t.Run("TokensInSecrets", func(t *testing.T) { recordsUses(t, c, namespace) })
}

// identifies looks for the Lease of the front door and the record of tokens in Secrets.
func identifies(t *testing.T, c *cluster.Cluster) {
	client := kubernetes.NewForConfigOrDie(c.Config())
	eventually(t, "the front door has a Lease", func() bool {
		leases, err := client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
		return err == nil && len(leases.Items) == 1 && strings.HasPrefix(leases.Items[0].Name, "apiserver-") && strings.HasPrefix(*leases.Items[0].Spec.HolderIdentity, leases.Items[0].Name+"_") &&
			time.Since(leases.Items[0].Spec.RenewTime.Time) < time.Minute
	})
	eventually(t, "the use of tokens in Secrets is recorded", func() bool {
		tracking, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kube-apiserver-legacy-service-account-token-tracking", metav1.GetOptions{})
		if err != nil {
			return false
		}
		_, err = time.Parse(time.DateOnly, tracking.Data["since"])
		return err == nil
	})
}

// livesThrough creates, gets, updates, applies, watches and deletes an object by a typed
// client. Every field that it is created with must be in each answer.
func livesThrough(t *testing.T, c *cluster.Cluster, config *rest.Config, text, namespace string) {
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(asJSON, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, path := clientOf(t, c, config, *kind)
	made, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	if path.namespaced {
		made.SetNamespace(namespace)
	}
	name := made.GetName()
	in := func(r *rest.Request) *rest.Request {
		return r.NamespaceIfScoped(namespace, path.namespaced).Resource(path.resource)
	}
	fresh := func() runtime.Object {
		o, err := scheme.Scheme.New(*kind)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	answered := fresh()
	if err := in(client.Post()).Body(object).Do(t.Context()).Into(answered); err != nil {
		t.Fatalf("create: %v", err)
	}
	contains(t, "created", asJSON, answered)
	got := fresh()
	if err := in(client.Get()).Name(name).Do(t.Context()).Into(got); err != nil {
		t.Fatalf("get: %v", err)
	}
	contains(t, "got", asJSON, got)
	read, _ := meta.Accessor(got)
	events, err := in(client.Get()).VersionedParams(&metav1.ListOptions{Watch: true, ResourceVersion: read.GetResourceVersion(),
		FieldSelector: "metadata.name=" + name}, scheme.ParameterCodec).Watch(t.Context())
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer events.Stop()
	updated := fresh()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a controller may write the status
		read.SetLabels(map[string]string{"changed": "yes"})
		err := in(client.Put()).Name(name).Body(got).Do(t.Context()).Into(updated)
		if apierrors.IsConflict(err) {
			return errors.Join(err, in(client.Get()).Name(name).Do(t.Context()).Into(got))
		}
		return err
	}); err != nil {
		t.Fatalf("update: %v", err)
	}
	contains(t, "updated", asJSON, updated)
	applied := fresh()
	if err := in(client.Patch(types.ApplyPatchType)).Name(name).Param("fieldManager", "test").Param("force", "true").Body(asJSON).
		Do(t.Context()).Into(applied); err != nil {
		t.Fatalf("apply: %v", err)
	}
	contains(t, "applied", asJSON, applied)
	if err := in(client.Delete()).Name(name).Body(&metav1.DeleteOptions{GracePeriodSeconds: new(int64)}).Do(t.Context()).Error(); err != nil {
		t.Fatalf("delete: %v", err)
	}
	for changes := 0; ; changes++ {
		e := receive(t, events.ResultChan(), 1)[0]
		contains(t, "watched", asJSON, e.Object)
		if e.Type == watch.Modified {
			continue // finalizers make more of them
		}
		if e.Type != watch.Deleted || changes < 2 {
			t.Fatalf("event %s after %d changes: %v", e.Type, changes, e.Object)
		}
		break
	}
}

// resourcePath is the path of a type.
type resourcePath struct {
	resource   string
	namespaced bool
}

// clientOf returns a typed client for a kind.
func clientOf(t *testing.T, c *cluster.Cluster, config *rest.Config, kind schema.GroupVersionKind) (*rest.RESTClient, resourcePath) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(stockdiscovery.NewDiscoveryClientForConfigOrDie(c.Config()))
	if err != nil {
		t.Fatal(err)
	}
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	own := rest.CopyConfig(config)
	gv := kind.GroupVersion()
	own.GroupVersion, own.NegotiatedSerializer, own.APIPath = &gv, scheme.Codecs.WithoutConversion(), "/apis"
	if gv.Group == "" {
		own.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(own)
	if err != nil {
		t.Fatal(err)
	}
	return client, resourcePath{mapping.Resource.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace}
}

// contains fails unless an object has all fields of the given one.
func contains(t *testing.T, what string, given []byte, object runtime.Object) {
	t.Helper()
	has, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(given, &want); err != nil {
		t.Fatal(err)
	}
	delete(want, "apiVersion")
	delete(want, "kind")
	if missing := missingIn("", want, has); missing != "" {
		t.Errorf("%s: %s", what, missing)
	}
}

// missingIn returns the first value of want that is not in got.
func missingIn(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for name, value := range want {
			if missing := missingIn(at+"."+name, value, got[name]); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		got, _ := got.([]any)
		for i, value := range want {
			if i >= len(got) {
				return fmt.Sprintf("%s[%d] is missing", at, i)
			}
			if missing := missingIn(fmt.Sprintf("%s[%d]", at, i), value, got[i]); missing != "" {
				return missing
			}
		}
		return ""
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Sprintf("%s is %v, want %v", at, got, want)
	}
	return ""
}

// resizes changes the resources of a pod by its subresource, evicts it, and asks who the
// client is.
func resizes(t *testing.T, c *cluster.Cluster, namespace string) {
	client := kubernetes.NewForConfigOrDie(protobuf(c))
	pods := client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "resized"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "a", Image: "a:1", Resources: corev1.ResourceRequirements{Requests: cpu("100m")}}}}}
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Spec.Containers[0].Resources.Requests = cpu("200m")
	if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err == nil {
		t.Error("an update of the pod itself changes resources")
	}
	pod.Spec.Containers[0].Image = "ignored:1"
	resized, err := pods.UpdateResize(t.Context(), pod.Name, pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := resized.Spec.Containers[0]; got.Resources.Requests.Cpu().String() != "200m" || got.Image != "a:1" {
		t.Errorf("resized: %+v", got)
	}
	resized.Spec.Containers[0].Resources.Limits = cpu("200m")
	resized.Spec.Containers[0].Resources.Requests = cpu("200m")
	resized.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resized.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
	resized.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resized.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
	if _, err := pods.UpdateResize(t.Context(), pod.Name, resized, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "QOS") {
		t.Errorf("a resize changes the quality of service: %v", err)
	}
	resized.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	if _, err := pods.UpdateResize(t.Context(), pod.Name, resized, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "cannot be removed") {
		t.Errorf("a resize removes a request: %v", err)
	}
	if err := pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "resized"}}); err != nil {
		t.Errorf("eviction: %v", err)
	}
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || self.Status.UserInfo.Username == "" {
		t.Errorf("self review: %+v, %v", self, err)
	}
}

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}
