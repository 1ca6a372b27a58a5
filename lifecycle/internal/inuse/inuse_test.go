package inuse_test

import (
	"log/slog"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/inuse"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	claims  = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, Kind: "PersistentVolumeClaim", Namespaced: true}
	volumes = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, Kind: "PersistentVolume"}
	classes = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Group: "storage.platform.io", Version: "v1", Resource: "volumeattributesclasses"}, Kind: "VolumeAttributesClass"}
	pods    = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}
)

func start(t *testing.T, kind inuse.Kind) *apitest.API {
	t.Helper()
	a := apitest.Start(t, claims, volumes, classes, pods)
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	c, err := inuse.New(kind, client, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { _ = c.Run(t.Context()) })
	t.Cleanup(loops.Wait)
	return a
}

func TestClaims(t *testing.T) {
	names := vocabulary.Platform()
	a := start(t, inuse.Claims(names))
	in, users := a.Objects(t, claims.GroupVersionResource, "here"), a.Objects(t, pods.GroupVersionResource, "here")
	for _, name := range []string{"free", "used", "held"} {
		in.Create(map[string]any{"name": name, "finalizers": []any{names.ClaimFinalizer()}})
	}
	in.Change("held", func(o *unstructured.Unstructured) {
		o.SetFinalizers([]string{"example.com/mine", names.ClaimFinalizer()})
	})
	pod := func(name, node, claim string) {
		users.Create(map[string]any{"name": name}, map[string]any{"spec": map[string]any{"nodeName": node, "volumes": []any{
			map[string]any{"name": "v", "persistentVolumeClaim": map[string]any{"claimName": claim}}}}})
	}
	pod("runs", "n", "used")
	pod("waits", "", "free")
	for _, name := range []string{"used", "free", "held"} {
		in.Delete(name, metav1.DeletePropagationBackground)
	}
	in.AwaitGone("free")
	apitest.Eventually(t, "only the other finalizer holds", func() bool { return len(in.Get("held").GetFinalizers()) == 1 })
	if in.Get("used") == nil {
		t.Fatal("a claim that a pod mounts is gone")
	}
	users.Change("runs", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "Succeeded", "status", "phase")
	})
	in.AwaitGone("used")
}

func TestVolumes(t *testing.T) {
	names := vocabulary.Platform()
	a := start(t, inuse.Volumes(names))
	in := a.Objects(t, volumes.GroupVersionResource, "")
	for name, phase := range map[string]string{"bound": "Bound", "free": "Released"} {
		in.Create(map[string]any{"name": name, "finalizers": []any{names.VolumeFinalizer()}}, map[string]any{"status": map[string]any{"phase": phase}})
		in.Delete(name, metav1.DeletePropagationBackground)
	}
	in.AwaitGone("free")
	if in.Get("bound") == nil {
		t.Fatal("a volume that a claim is bound to is gone")
	}
	in.Change("bound", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "Released", "status", "phase")
	})
	in.AwaitGone("bound")
}

func TestAttributesClasses(t *testing.T) {
	names := vocabulary.Platform()
	a := start(t, inuse.AttributesClasses(names))
	in := a.Objects(t, classes.GroupVersionResource, "")
	users := map[string]apitest.Objects{}
	for class, x := range map[string]struct {
		of        apitest.Type
		namespace string
		field     []string
	}{
		"volume":  {volumes, "", []string{"spec", "volumeAttributesClassName"}},
		"claim":   {claims, "here", []string{"spec", "volumeAttributesClassName"}},
		"current": {claims, "here", []string{"status", "currentVolumeAttributesClassName"}},
		"target":  {claims, "there", []string{"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"}},
		"free":    {claims, "here", []string{"spec", "volumeName"}},
	} {
		in.Create(map[string]any{"name": class, "finalizers": []any{names.AttributesClassFinalizer()}})
		users[class] = a.Objects(t, x.of.GroupVersionResource, x.namespace)
		user := map[string]any{}
		_ = unstructured.SetNestedField(user, class, x.field...)
		users[class].Create(map[string]any{"name": "of-" + class}, user)
		in.Delete(class, metav1.DeletePropagationBackground)
	}
	in.AwaitGone("free")
	delete(users, "free")
	for class, of := range users {
		if in.Get(class) == nil {
			t.Fatalf("the class that %s uses is gone", "of-"+class)
		}
		of.Delete("of-"+class, metav1.DeletePropagationBackground)
		in.AwaitGone(class)
	}
}
