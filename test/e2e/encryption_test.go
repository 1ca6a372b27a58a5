package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func TestEncryptionInOneProcess(t *testing.T) {
	t.Parallel()
	v := vocabulary.K8s()
	file := encryption(t, "", v, "a")
	a := startAllInOne(t, v, "--encryption-provider-config="+file)
	encryptedSecrets(t, a.Cluster, filepath.Join(a.Dir, "etcd"), file)
}

func TestEncryptionInProcesses(t *testing.T) {
	t.Parallel()
	v := vocabulary.Platform()
	s := newSuite(t, v)
	file := encryption(t, "", v, "a")
	var encrypting []program
	for _, p := range programs() {
		if p.etcd {
			p.args = append(p.args[:len(p.args):len(p.args)], "--encryption-provider-config="+file)
			encrypting = append(encrypting, p)
		}
		s.start(t, p)
	}
	c := s.connect(t, "frontdoor")
	encryptedSecrets(t, c, s.data, file)
	kmsOfProcesses(t, s, c, file, encrypting)
}

// kmsOfProcesses encrypts with a KMS plugin that several processes use: the store writes and
// reads, the hub reads for watches, and each again after a restart.
func kmsOfProcesses(t *testing.T, s *suite, c *cluster.Cluster, file string, encrypting []program) {
	t.Helper()
	plugin := kmsplugin.Start(t)
	content := "apiVersion: " + c.Vocabulary.Group("apiserver.config.") + "/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- {resources: [secrets], providers: [{kms: {apiVersion: v2, name: vault, endpoint: '" + plugin.Endpoint() + "'}}, {secretbox: {keys: [{name: b, secret: " +
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", 32))) + "}]}}]}\n"
	if err := os.WriteFile(file+".next", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".next", file); err != nil {
		t.Fatal(err)
	}
	client := c.Client(t)
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(newNamespace(t, client))
	const word = "dmF1bHRlZCBpcyB0aGUgc2VjcmV0"
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "k"}, "data": map[string]any{"word": word}}}
	eventually(t, "secrets are written with the help of the plugin", func() bool {
		_ = secrets.Delete(t.Context(), "k", metav1.DeleteOptions{}) // there is none at first
		_, err := secrets.Create(t.Context(), object.DeepCopy(), metav1.CreateOptions{})
		return err == nil && holds(t, s.data, "portico:enc:kms:v2:vault:")
	})
	key := plugin.Rotate(t) // which a process learns of at its start, and later once a minute
	for _, p := range encrypting {
		s.processes[p.name].kill()
		s.start(t, p)
		eventually(t, "the secret is read after a restart of "+p.name, func() bool {
			got, err := secrets.Get(t.Context(), "k", metav1.GetOptions{})
			if err != nil {
				return false
			}
			data, _, _ := unstructured.NestedString(got.Object, "data", "word")
			return data == word
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watched, err := secrets.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=after"})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	object.SetName("after")
	if _, err := secrets.Create(ctx, object, metav1.CreateOptions{}); err != nil || !holds(t, s.data, key) {
		t.Errorf("%v, or the files of etcd lack the new key of the plugin", err)
	}
	event := <-watched.ResultChan()
	seen, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("the watch has %+v", event)
	}
	if data, _, _ := unstructured.NestedString(seen.Object, "data", "word"); data != word || holds(t, s.data, word) {
		t.Errorf("the watch has %v, or the files of etcd contain the secret", seen)
	}
}

// encryption writes a configuration for secrets, whose first key encrypts.
func encryption(t *testing.T, file string, v vocabulary.Vocabulary, keys ...string) string {
	t.Helper()
	if file == "" {
		file = filepath.Join(t.TempDir(), "encryption.yaml")
	}
	var list []string
	for _, key := range keys {
		list = append(list, "{name: "+key+", secret: "+base64.StdEncoding.EncodeToString([]byte(strings.Repeat(key, 32)))+"}")
	}
	content := "apiVersion: " + v.Group("apiserver.config.") + "/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- {resources: [secrets], providers: [{secretbox: {keys: [" + strings.Join(list, ", ") + "]}}]}\n"
	if err := os.WriteFile(file+".next", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".next", file); err != nil {
		t.Fatal(err)
	}
	return file
}

// encryptedSecrets: the files of etcd do not contain a secret, watches and reads do; an
// update without a change writes it only after the key was replaced.
func encryptedSecrets(t *testing.T, c *cluster.Cluster, etcd, file string) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	watched, err := secrets.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	const word = "c3dvcmRmaXNoIGlzIHNlY3JldA=="
	object := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind,
			"metadata": map[string]any{"name": "a"}, "data": map[string]any{"word": word}}}
	}
	made, err := secrets.Create(t.Context(), object("Secret"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holds(t, etcd, word) {
		t.Error("the files of etcd contain the secret")
	}
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	if _, err := maps.Create(t.Context(), object("ConfigMap"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if !holds(t, etcd, word) {
		t.Error("the files of etcd do not contain what is not encrypted: they are not where this test looks")
	}
	write := func() string {
		t.Helper()
		got, err := secrets.Update(t.Context(), made.DeepCopy(), metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetResourceVersion()
	}
	first := made.GetResourceVersion()
	for range 3 { // repeated writes without an effect take a shorter way
		if got := write(); got != first {
			t.Fatalf("written again with the same key: %s after %s", got, first)
		}
	}
	encryption(t, file, c.Vocabulary, "b", "a")
	eventually(t, "the secret is written with the new key", func() bool {
		made.SetResourceVersion("")
		return write() != first
	})
	second := write()
	encryption(t, file, c.Vocabulary, "b")
	if got := write(); got != second {
		t.Errorf("written again with the new key: %s after %s", got, second)
	}
	for i, want := range []watch.EventType{watch.Added, watch.Modified} {
		event := <-watched.ResultChan()
		seen, ok := event.Object.(*unstructured.Unstructured)
		if event.Type != want || !ok {
			t.Fatalf("event %d: %+v", i, event)
		}
		if got, _, _ := unstructured.NestedString(seen.Object, "data", "word"); got != word || seen.GetResourceVersion() != []string{first, second}[i] {
			t.Errorf("event %d: %+v", i, seen)
		}
	}
}

// holds reports whether a file below a folder contains a word.
func holds(t *testing.T, folder, word string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || found {
			return err
		}
		content, err := os.ReadFile(path)
		found = bytes.Contains(content, []byte(word))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
