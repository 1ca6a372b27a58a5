package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// The environment of TestCBORClient: the cluster, and the gates of client-go.
const cborCluster = "PORTICO_CBOR_CLUSTER"

// servesCBOR works with a cluster in CBOR. The gates of client-go hold for a process, so its part
// is run in another one.
func servesCBOR(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	at, err := json.Marshal(cluster.Cluster{URL: c.URL, CA: c.CA, Token: c.Token})
	if err != nil {
		t.Fatal(err)
	}
	client := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCBORClient$", "-test.v")
	client.Env = append(os.Environ(), cborCluster+"="+string(at), "KUBE_FEATURE_ClientsAllowCBOR=true", "KUBE_FEATURE_ClientsPreferCBOR=true")
	if out, err := client.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestCBORClient")) {
		t.Errorf("the client: %v\n%s", err, out)
	}
	for path, accept := range map[string]string{"/api": "", "/apis": "", "/api/v1": "", "/api/v1/namespaces/default/configmaps": ";as=Table;g=meta.k8s.io;v=v1", "/api/v1/namespaces/default/pods/none": ""} {
		a := c.Ask(t, cluster.Request{Path: path, Header: http.Header{"Accept": {"application/cbor" + accept}}})
		if a.Header.Get("Content-Type") != "application/cbor" || !strings.HasPrefix(a.Body, "\xd9\xd9\xf7") {
			t.Errorf("%s: %d %s", path, a.Code, a.Header.Get("Content-Type"))
		}
	}
	if a := c.Ask(t, cluster.Request{Method: http.MethodPost, Path: "/api/v1/namespaces/default/configmaps", Type: "application/cbor", Body: "\xa2\x41a\x01\x41a\x02"}); a.Code != http.StatusBadRequest {
		t.Errorf("a member twice: %d %s", a.Code, a.Body)
	}
}

// recorded records the media types of a client.
type recorded struct {
	http.RoundTripper
	seen map[string]bool
}

// RoundTrip implements http.RoundTripper.
func (r recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	r.seen["request "+request.Header.Get("Content-Type")] = true
	if err == nil {
		r.seen["response "+response.Header.Get("Content-Type")] = true
	}
	return response, err
}

// TestCBORClient is the part of servesCBOR with client-go, in a process of its own.
func TestCBORClient(t *testing.T) {
	at := os.Getenv(cborCluster)
	if at == "" {
		t.Skip("servesCBOR runs it")
	}
	var c cluster.Cluster
	if err := json.Unmarshal([]byte(at), &c); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	config := c.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorded{next, seen} })
	typedCBOR(t, config)
	dynamicCBOR(t, config)
	for _, want := range []string{"request application/cbor", "request application/apply-patch+cbor", "response application/cbor", "response application/cbor-seq"} {
		if !seen[want] {
			t.Errorf("no %s among %v", want, seen)
		}
	}
}

// typedCBOR uses a built-in type with bytes and numbers.
func typedCBOR(t *testing.T, config *rest.Config) {
	client := kubernetes.NewForConfigOrDie(config).CoreV1()
	ctx := t.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cbor"}, Data: map[string][]byte{"bytes": {0, 1, 255}}, StringData: map[string]string{"text": "ä"}}
	if got, err := client.Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil || !bytes.Equal(got.Data["bytes"], []byte{0, 1, 255}) || string(got.Data["text"]) != "ä" || got.CreationTimestamp.IsZero() {
		t.Errorf("create: %+v, %v", got, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cbor"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}}
	if got, err := client.Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil || got.Spec.Containers[0].Ports[0].ContainerPort != 80 || *got.Spec.TerminationGracePeriodSeconds != 30 {
		t.Errorf("create: %+v, %v", got, err)
	}
	pod.Name, pod.Spec.Containers[0].Ports[0].ContainerPort = "other", 70000
	if _, err := client.Pods("default").Create(ctx, pod, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid pod: %v", err)
	}
	if list, err := client.Pods("default").List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "cbor" {
		t.Errorf("list: %+v, %v", list, err)
	}
	zero := int64(0)
	if err := client.Pods("default").Delete(ctx, "cbor", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// dynamicCBOR uses a custom type.
func dynamicCBOR(t *testing.T, config *rest.Config) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.cbor.example.com"},
		"spec": map[string]any{"group": "cbor.example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"size": map[string]any{"type": "integer"}, "share": map[string]any{"type": "number"}}}}}}}}
	if _, err := definitions.Create(ctx, &unstructured.Unstructured{Object: definition}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	widgets := client.Resource(schema.GroupVersionResource{Group: "cbor.example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
	eventually(t, "the type is served", func() bool {
		_, err := widgets.List(ctx, metav1.ListOptions{})
		return err == nil
	})
	events, err := widgets.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	widget := func(size any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cbor.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "one"}, "size": size, "share": 0.25}}
	}
	if got, err := widgets.Apply(ctx, "one", widget(int64(7)), metav1.ApplyOptions{FieldManager: "test"}); err != nil || got.Object["size"] != int64(7) || got.Object["share"] != 0.25 {
		t.Errorf("apply: %+v, %v", got, err)
	}
	if got, err := widgets.Patch(ctx, "one", types.MergePatchType, []byte(`{"size":8}`), metav1.PatchOptions{}); err != nil || got.Object["size"] != int64(8) {
		t.Errorf("patch: %+v, %v", got, err)
	}
	if _, err := widgets.Update(ctx, widget("large"), metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid widget: %v", err)
	}
	for _, want := range []struct {
		of   watch.EventType
		size int64
	}{{watch.Added, 7}, {watch.Modified, 8}} {
		event, ok := <-events.ResultChan()
		object, _ := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != want.of || object == nil || object.Object["size"] != want.size {
			t.Fatalf("event %+v, want %+v", event, want)
		}
	}
	if list, err := widgets.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.GetResourceVersion() == "" {
		t.Errorf("list: %+v, %v", list, err)
	}
}
