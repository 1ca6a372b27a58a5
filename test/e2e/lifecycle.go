package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// holder is a finalizer that only the test bodies remove.
const holder = "example.com/hold"

// deletedNamespace deletes a namespace with content, one object of which is held.
func deletedNamespace(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	in := client.Resource(configMaps()).Namespace(namespace)
	for i := range 50 {
		o := configMap(fmt.Sprintf("c%02d", i), "x")
		if i == 0 {
			o.SetFinalizers([]string{holder})
		}
		if _, err := in.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	deployment := samples()[1]
	if _, err := deployment.in(client, namespace).Create(t.Context(), deployment.named("web"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Resource(namespaces()).Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace tells what holds it", func() bool {
		ns, err := client.Resource(namespaces()).Get(t.Context(), namespace, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(conditionMessage(ns, "NamespaceFinalizersRemaining"), holder) &&
			conditionMessage(ns, "NamespaceContentRemaining") == "configmaps: 1"
	})
	if list, err := in.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "c00" {
		t.Errorf("left in the namespace: %v, %v", list, err)
	}
	if _, err := in.Create(t.Context(), configMap("late", "x"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create in a namespace that is deleted: %v", err)
	}
	patchMetadata(t, in, "c00", `{"finalizers":null}`)
	eventually(t, "the namespace is gone", func() bool {
		_, err := client.Resource(namespaces()).Get(t.Context(), namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// conditionMessage returns the message of a condition that is true.
func conditionMessage(o *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, _ := each.(map[string]any); condition["type"] == kind && condition["status"] == "True" {
			return fmt.Sprint(condition["message"])
		}
	}
	return ""
}

// namespaceDefaults checks the default objects of a namespace, also after they have been
// deleted or changed.
func namespaceDefaults(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	accounts := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(namespace)
	in, name := client.Resource(configMaps()).Namespace(namespace), c.Vocabulary.RootCertificate()
	there := func() bool {
		_, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		published, err2 := in.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || err2 != nil {
			return false
		}
		certificates, _, _ := unstructured.NestedString(published.Object, "data", "ca.crt")
		return certificates == string(c.CA)
	}
	eventually(t, "the namespace has its defaults", there)
	if err := accounts.Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":{"ca.crt":"another"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has its defaults again", there)
}

// family is an owner and its dependents, as ConfigMaps of one namespace.
type family struct {
	t  *testing.T
	in dynamic.ResourceInterface
}

func newFamily(t *testing.T, c *cluster.Cluster) family {
	client := c.Client(t)
	return family{t, client.Resource(configMaps()).Namespace(newNamespace(t, client))}
}

// add creates an object with owners, which wait for it when they are deleted in the
// foreground.
func (f family) add(name string, owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	f.t.Helper()
	o, block := configMap(name, "x"), true
	var references []metav1.OwnerReference
	for _, owner := range owners {
		references = append(references, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap",
			Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &block})
	}
	o.SetOwnerReferences(references)
	made, err := f.in.Create(f.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return made
}

func (f family) delete(name string, policy metav1.DeletionPropagation) {
	f.t.Helper()
	if err := f.in.Delete(f.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		f.t.Fatal(err)
	}
}

// get returns an object; nil if it does not exist.
func (f family) get(name string) *unstructured.Unstructured {
	f.t.Helper()
	o, err := f.in.Get(f.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}

func (f family) awaitGone(names ...string) {
	f.t.Helper()
	for _, name := range names {
		eventually(f.t, name+" is gone", func() bool { return f.get(name) == nil })
	}
}

// deletedOwners deletes owners in all three ways.
func deletedOwners(t *testing.T, c *cluster.Cluster) {
	for name, body := range map[string]func(*testing.T, family){
		"Background": deletedInBackground, "Foreground": deletedInForeground, "Orphan": orphaned, "Absent": absentOwner,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body(t, newFamily(t, c))
		})
	}
}

// deletedInBackground deletes one of two owners, then the other, over two generations.
func deletedInBackground(t *testing.T, f family) {
	mother, father := f.add("mother"), f.add("father")
	child := f.add("child", mother, father)
	f.add("grandchild", child)
	f.delete("mother", metav1.DeletePropagationBackground)
	eventually(t, "the child has one owner", func() bool {
		owners := f.get("child").GetOwnerReferences()
		return len(owners) == 1 && owners[0].UID == father.GetUID()
	})
	f.delete("father", metav1.DeletePropagationBackground)
	f.awaitGone("child", "grandchild")
}

// deletedInForeground deletes an owner whose dependent has a finalizer: the owner stays.
func deletedInForeground(t *testing.T, f family) {
	parent := f.add("parent")
	f.add("grandchild", f.add("child", parent))
	patchMetadata(t, f.in, "grandchild", fmt.Sprintf(`{"finalizers":[%q]}`, holder))
	f.delete("parent", metav1.DeletePropagationForeground)
	eventually(t, "the deletion has come to the grandchild", func() bool { return f.get("grandchild").GetDeletionTimestamp() != nil })
	for _, name := range []string{"parent", "child"} {
		if o := f.get(name); o == nil || o.GetDeletionTimestamp() == nil {
			t.Errorf("%s does not wait for the grandchild: %v", name, o)
		}
	}
	patchMetadata(t, f.in, "grandchild", `{"finalizers":null}`)
	f.awaitGone("grandchild", "child", "parent")
}

// orphaned deletes an owner and keeps its dependents.
func orphaned(t *testing.T, f family) {
	parent := f.add("parent")
	f.add("child", parent)
	f.delete("parent", metav1.DeletePropagationOrphan)
	f.awaitGone("parent")
	if child := f.get("child"); child == nil || len(child.GetOwnerReferences()) > 0 {
		t.Errorf("the orphan: %v", child)
	}
}

// absentOwner makes objects with owners that do not exist: one with a wrong uid, and
// one in another namespace.
func absentOwner(t *testing.T, f family) {
	real := f.add("parent")
	impostor := real.DeepCopy()
	impostor.SetUID("00000000-0000-4000-8000-000000000000")
	f.add("deceived", impostor)
	f.add("both", real, impostor)
	f.add("child", real)
	f.awaitGone("deceived")
	eventually(t, "the wrong reference is gone", func() bool { return len(f.get("both").GetOwnerReferences()) == 1 })
	if f.get("child") == nil {
		t.Error("the child of a parent that is there was deleted")
	}
}

func patchMetadata(t *testing.T, in dynamic.ResourceInterface, name, metadata string) {
	t.Helper()
	if _, err := in.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":`+metadata+`}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
