package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestKMSInOneProcess: secrets are encrypted with the help of a plugin, written again after
// it has rotated its key, readable without it, and again after a restart, when new ones wait
// for it.
func TestKMSInOneProcess(t *testing.T) {
	t.Parallel()
	plugin := kmsplugin.Start(t)
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- {resources: [secrets], providers: [{kms: {apiVersion: v2, name: vault, endpoint: '" + plugin.Endpoint() + "'}}]}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAllInOne(t, vocabulary.K8s(), "--encryption-provider-config="+file)
	client := a.Client(t)
	namespace := newNamespace(t, client)
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	const word = "c3dvcmRmaXNoIGlzIHNlY3JldA=="
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": name}, "data": map[string]any{"word": word}}}
	}
	made, err := secrets.Create(t.Context(), object("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	etcd := filepath.Join(a.Dir, "etcd")
	if holds(t, etcd, word) || !holds(t, etcd, "portico:enc:kms:v2:vault:") || !holds(t, etcd, "key-1") {
		t.Error("the files of etcd contain the secret, or not what the plugin returned")
	}
	healthy := func() bool { return a.Ask(t, cluster.Request{Path: "/readyz/kms-providers"}).Code == 200 }
	if !healthy() || !strings.Contains(a.Ask(t, cluster.Request{Path: "/metrics"}).Body, `portico_kms_healthy{provider="vault"} 1`) {
		t.Error("no health check or metric of the plugin")
	}
	key, first := plugin.Rotate(t), made.GetResourceVersion()
	eventually(t, "the secret is written with the new key", func() bool {
		made.SetResourceVersion("")
		got, err := secrets.Update(t.Context(), made.DeepCopy(), metav1.UpdateOptions{})
		return healthy() && err == nil && got.GetResourceVersion() != first && holds(t, etcd, key)
	})
	plugin.Stop()
	eventually(t, "the health check fails", func() bool { return !healthy() })
	if _, err := secrets.Create(t.Context(), object("b"), metav1.CreateOptions{}); err != nil {
		t.Errorf("a write soon after the plugin has stopped: %v", err)
	}
	plugin.Serve(t)
	a.process.stop(t)
	a.start(t, "--encryption-provider-config="+file)
	client = a.Client(t)
	secrets = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	plugin.Stop()
	for _, name := range []string{"a", "b"} {
		got, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if data, _, _ := unstructured.NestedString(got.Object, "data", "word"); data != word {
			t.Errorf("%s: %v", name, got)
		}
	}
	// A type that uses another plugin, which is not there, is refused, and no other type.
	content = strings.Replace(content, "name: vault", "name: other", 1)
	content += "- {resources: [configmaps], providers: [{identity: {}}]}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "writes are refused", func() bool {
		_, err := secrets.Create(t.Context(), object("c"), metav1.CreateOptions{})
		if err == nil {
			_ = secrets.Delete(t.Context(), "c", metav1.DeleteOptions{})
		}
		return apierrors.IsServiceUnavailable(err) && strings.Contains(err.Error(), `KMS provider "other"`)
	})
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	plain := object("c")
	plain.SetKind("ConfigMap")
	if _, err := maps.Create(t.Context(), plain, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}
