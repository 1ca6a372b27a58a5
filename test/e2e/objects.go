package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// objects takes one object of each sample type through its life.
func objects(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	for _, s := range samples() {
		t.Run(s.resource.Resource, func(t *testing.T) {
			ctx, in, name := t.Context(), s.in(client, namespace), namespace+"-one"
			made, err := in.Create(ctx, s.named(name), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if made.GetUID() == "" || made.GetResourceVersion() == "" || made.GetCreationTimestamp().Time.IsZero() {
				t.Errorf("server-set metadata is missing: %v", made.Object["metadata"])
			}
			if _, err := in.Create(ctx, s.named(name), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				t.Errorf("create of a name that is taken: %v", err)
			}
			replaceAndRead(t, c, s, made)
			if err := in.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			gone(t, c, s, made)
		})
	}
}

func replaceAndRead(t *testing.T, c *cluster.Cluster, s sample, made *unstructured.Unstructured) {
	t.Helper()
	ctx, in := t.Context(), s.in(c.Client(t), made.GetNamespace())
	changed := made.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, "second", s.path...); err != nil {
		t.Fatal(err)
	}
	replaced, err := in.Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := in.Get(ctx, made.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(read.Object, s.path...); got != "second" {
		t.Errorf("%v is %q after the replace", s.path, got)
	}
	if read.GetUID() != made.GetUID() || read.GetResourceVersion() != replaced.GetResourceVersion() ||
		read.GetResourceVersion() == made.GetResourceVersion() {
		t.Errorf("identity or version are wrong: made %v, read %v", made.Object["metadata"], read.Object["metadata"])
	}
}

// gone waits until the object no longer exists, which takes a while for a namespace.
func gone(t *testing.T, c *cluster.Cluster, s sample, o *unstructured.Unstructured) {
	t.Helper()
	in := s.in(c.Client(t), o.GetNamespace())
	eventually(t, fmt.Sprintf("%s %s is gone", s.resource.Resource, o.GetName()), func() bool {
		left, err := in.Get(t.Context(), o.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && s.resource == namespaces() && left.GetDeletionTimestamp() != nil
	})
}

// lists reads collections whole, in chunks and by label.
func lists(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	in := client.Resource(configMaps()).Namespace(namespace)
	const count = 25
	for i := range count {
		o := configMap(fmt.Sprintf("c%02d", i), "x")
		o.SetLabels(map[string]string{"made-by": "e2e", "odd": fmt.Sprint(i%2 == 1)})
		if _, err := in.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := in.List(t.Context(), metav1.ListOptions{LabelSelector: ours})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Items) != count || all.GetResourceVersion() == "" || all.GetKind() != "ConfigMapList" {
		t.Errorf("list: %d items of %d, version %q, kind %s", len(all.Items), count, all.GetResourceVersion(), all.GetKind())
	}
	odd, err := in.List(t.Context(), metav1.ListOptions{LabelSelector: "odd=true," + ours})
	if err != nil {
		t.Fatal(err)
	}
	if len(odd.Items) != count/2 {
		t.Errorf("list by label: %d items, want %d", len(odd.Items), count/2)
	}
	var names []string
	options := metav1.ListOptions{LabelSelector: ours, Limit: 10}
	for {
		chunk, err := in.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range chunk.Items {
			names = append(names, o.GetName())
		}
		if options.Continue = chunk.GetContinue(); options.Continue == "" {
			break
		}
	}
	for i, o := range all.Items {
		if i >= len(names) || names[i] != o.GetName() {
			t.Fatalf("chunks hold %q, the whole list differs at %d: %s", names, i, o.GetName())
		}
	}
}

// largeChunks: a chunk has as many objects as requested, however large they are, in each encoding.
func largeChunks(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	in := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	for i := range 9 {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": strings.Repeat("eHh4", 75<<10)}}}
		o.SetName(fmt.Sprintf("c%d", i))
		o.SetLabels(map[string]string{"odd": fmt.Sprint(i%2 == 1)})
		if _, err := in.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := in.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := len(all.Items) // with those that controllers make
	path := "/api/v1/namespaces/" + namespace + "/secrets"
	for _, media := range []string{"application/json", c.Vocabulary.Protobuf, "application/json;as=Table;v=v1;g=" + c.Vocabulary.Group("meta.")} {
		names := []string{}
		for next, want := "", 4; ; want = min(4, count-len(names)) {
			answer := c.Ask(t, cluster.Request{Path: path + "?limit=4&continue=" + next, Header: http.Header{"Accept": {media}}})
			if answer.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", media, answer.Code, answer.Body)
			}
			got, list := chunkOf(t, answer, media)
			if len(got) != want {
				t.Fatalf("%s: %d objects, want %d", media, len(got), want)
			}
			names = append(names, got...)
			if left := count - len(names); (list.GetContinue() == "") != (left == 0) || left > 0 && (list.GetRemainingItemCount() == nil || *list.GetRemainingItemCount() != int64(left)) {
				t.Errorf("%s: %d objects are left, and the list says %+v", media, left, list)
			}
			if next = list.GetContinue(); next == "" {
				break
			}
		}
		if !slices.IsSorted(names) || len(slices.Compact(names)) != count {
			t.Errorf("%s: the chunks have %q", media, names)
		}
	}
	selected, err := in.List(t.Context(), metav1.ListOptions{LabelSelector: "odd=true", Limit: 3})
	if err != nil || len(selected.Items) != 3 || selected.GetContinue() == "" || selected.GetRemainingItemCount() != nil {
		t.Errorf("by label: %d objects, %q, %v", len(selected.Items), selected.GetContinue(), err)
	}
	if selected, err = in.List(t.Context(), metav1.ListOptions{LabelSelector: "odd=true", Limit: 3, Continue: selected.GetContinue()}); err != nil || len(selected.Items) != 1 || selected.GetContinue() != "" {
		t.Errorf("the rest by label: %d objects, %q, %v", len(selected.Items), selected.GetContinue(), err)
	}
}

// chunkOf returns the names of the objects of a list of Secrets, and its metadata.
func chunkOf(t *testing.T, answer cluster.Answer, media string) (names []string, list metav1.ListMeta) {
	t.Helper()
	if strings.HasPrefix(media, "application/json") {
		var chunk struct {
			Metadata metav1.ListMeta
			Items    []metav1.PartialObjectMetadata
			Rows     []struct{ Object metav1.PartialObjectMetadata }
		}
		answer.Decode(t, &chunk)
		for _, row := range chunk.Rows {
			chunk.Items = append(chunk.Items, row.Object)
		}
		for i := range chunk.Items {
			names = append(names, chunk.Items[i].Name)
		}
		return names, chunk.Metadata
	}
	var envelope runtime.Unknown
	var chunk corev1.SecretList
	err := envelope.Unmarshal([]byte(answer.Body)[4:])
	if err == nil {
		err = chunk.Unmarshal(envelope.Raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range chunk.Items {
		names = append(names, chunk.Items[i].Name)
	}
	return names, chunk.ListMeta
}

// ownNamespaces checks the namespaces that the service creates.
func ownNamespaces(t *testing.T, c *cluster.Cluster) {
	in := c.Client(t).Resource(namespaces())
	for _, name := range []string{"default", c.Vocabulary.Namespace("system"), c.Vocabulary.Namespace("public"), c.Vocabulary.Namespace("node-lease")} {
		eventually(t, "namespace "+name, func() bool {
			_, err := in.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil
		})
	}
}
