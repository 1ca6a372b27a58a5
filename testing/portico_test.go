package portico_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	portico "github.com/portico-platform/portico/testing"
)

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 1}}}
`

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"size": size}}}
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// TestParallel: control planes that run at the same time share nothing.
func TestParallel(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c := clientOf(t, portico.Start(t).Config())
			t.Log("start:", time.Since(began))
			object := configMap("same")
			object.Data = map[string]string{"test": t.Name()}
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			var all corev1.ConfigMapList
			if err := c.List(t.Context(), &all, client.InNamespace("default")); err != nil || len(all.Items) != 1 || all.Items[0].Data["test"] != t.Name() {
				t.Errorf("%v %v", all.Items, err)
			}
		})
	}
}

// TestNothingIsLeft: after the end of the test there are no goroutines of the suite, no files and
// nobody listens.
func TestNothingIsLeft(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var address string
	t.Run("inner", func(t *testing.T) {
		p := portico.Start(t, portico.WithControllers(), portico.WithWebhooks(envtest.WebhookInstallOptions{}))
		u, err := url.Parse(p.Config().Host)
		if err != nil {
			t.Fatal(err)
		}
		address = u.Host
		// A watch is open when the test ends.
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, p.Config().Host+"/api/v1/configmaps?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := rest.HTTPClientFor(p.Config())
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Do(request)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response, err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
	})
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		left := ours()
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines are left:\n%s", left)
		}
	}
}

// ours returns the goroutines that run code of the suite, etcd or NATS.
func ours() string {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var left []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "portico_test.") {
			continue // this test
		}
		for _, of := range []string{"portico-platform/portico/", "go.etcd.io/", "nats-io/"} {
			if strings.Contains(stack, of) {
				left = append(left, stack)
				break
			}
		}
	}
	return strings.Join(left, "\n\n")
}

// TestDefinitions are installed from a folder and from an object.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "widgets.yaml"), []byte(widgets), 0o600); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, portico.Start(t, portico.WithCRDPaths(folder)).Config())
	if err := c.Create(t.Context(), widget("small", 1)); err != nil {
		t.Error(err)
	}
	if err := c.Create(t.Context(), widget("none", 0)); !apierrors.IsInvalid(err) {
		t.Errorf("a widget without size: %v", err)
	}
}

// TestAMissingFolder is an error, after which nothing runs.
func TestAMissingFolder(t *testing.T) {
	t.Parallel()
	e := &portico.Environment{CRDDirectoryPaths: []string{filepath.Join(t.TempDir(), "none")}, ErrorIfCRDPathMissing: true}
	if _, err := e.Start(); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("got %v", err)
	}
	if _, err := e.AddUser(envtest.User{Name: "alice"}, nil); err == nil {
		t.Error("the environment runs")
	}
}

// TestUsers: a user has the permissions that are granted, and no others.
func TestUsers(t *testing.T) {
	t.Parallel()
	p := portico.Start(t)
	admin, alice := clientOf(t, p.Config()), p.AddUser("alice", "testers")
	c := clientOf(t, alice.Config())
	if err := c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default")); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v", err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "testers", Namespace: "default"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "testers"}}}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default")); err != nil {
		t.Error(err)
	}
	if err := c.Create(t.Context(), configMap("a")); !apierrors.IsForbidden(err) {
		t.Errorf("create with the role view: %v", err)
	}
	content, err := alice.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := clientOf(t, config).List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default")); err != nil {
		t.Error(err)
	}
}

// TestWebhooks: the API calls a webhook server of the test, with the certificates that were made
// for it.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	path, none, fail := "/deny", admissionregistration.SideEffectClassNone, admissionregistration.Fail
	p := portico.Start(t, portico.WithWebhooks(envtest.WebhookInstallOptions{
		ValidatingWebhooks: []*admissionregistration.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "deny"},
			Webhooks: []admissionregistration.ValidatingWebhook{{
				Name: "deny.example.com", SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistration.WebhookClientConfig{Service: &admissionregistration.ServiceReference{Name: "hook", Namespace: "default", Path: &path}},
				Rules: []admissionregistration.RuleWithOperations{{Operations: []admissionregistration.OperationType{"CREATE"},
					Rule: admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}},
			}},
		}},
	}))
	hooks := p.Webhooks()
	server := webhook.NewServer(webhook.Options{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir})
	server.Register(path, &webhook.Admission{Handler: admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
		if r.Name == "bad" {
			return admission.Denied("bad name")
		}
		return admission.Allowed("")
	})})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for server.StartedChecker()(nil) != nil {
		runtime.Gosched()
	}
	c := clientOf(t, p.Config())
	if err := c.Create(ctx, configMap("bad")); err == nil || !strings.Contains(err.Error(), "bad name") {
		t.Errorf("got %v", err)
	}
	if err := c.Create(ctx, configMap("good")); err != nil {
		t.Error(err)
	}
}

// TestControllers: with controllers, a deleted namespace disappears with its objects.
func TestControllers(t *testing.T) {
	t.Parallel()
	c := clientOf(t, portico.Start(t, portico.WithControllers()).Config())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short"}}
	object := configMap("a")
	object.Namespace = "short"
	for _, o := range []client.Object{namespace, object} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !apierrors.IsNotFound(c.Get(deadline, client.ObjectKeyFromObject(namespace), namespace)) {
		if deadline.Err() != nil {
			t.Fatal("the namespace is still there")
		}
	}
}

// BenchmarkStart measures the start, with a first object, and the stop.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		e := &portico.Environment{}
		config, err := e.Start()
		if err != nil {
			b.Fatal(err)
		}
		c, err := client.New(config, client.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Create(b.Context(), configMap("first")); err != nil {
			b.Fatal(err)
		}
		if err := e.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}
