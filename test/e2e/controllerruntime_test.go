package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-platform/portico/services/vocabulary"
)

// TestControllerRuntime works with controller-runtime's client and manager, on a
// built-in type and on a custom one, in both releases.
func TestControllerRuntime(t *testing.T) {
	for _, release := range []string{"1.21", "1.36"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			testControllerRuntime(t, "--emulated-version="+release)
		})
	}
}

func testControllerRuntime(t *testing.T, args ...string) {
	c := startAllInOne(t, vocabulary.K8s(), args...).Cluster
	direct, err := client.New(c.Config(), client.Options{Scheme: schemeWithSites(t)})
	if err != nil {
		t.Fatal(err)
	}
	serveSites(t, direct)
	for _, subject := range []subject{deployments(), sites(), anySites()} {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			w := &work{subject, direct, newNamespace(t, c.Client(t))}
			t.Run("Create", w.create)
			t.Run("Update", w.update)
			t.Run("Patch", w.patch)
			t.Run("Apply", w.apply)
			t.Run("Status", w.status)
			t.Run("Scale", w.scale)
			t.Run("DeleteAllOf", w.deleteAllOf)
		})
	}
	t.Run("Manager", func(t *testing.T) {
		t.Parallel()
		manages(t, c, direct)
	})
}

// subject is a type whose objects have spec.replicas and status.replicas.
type subject struct {
	name string
	make func(name string) client.Object
	list func() client.ObjectList
}

func deployments() subject {
	return subject{"Deployments",
		func(name string) client.Object { return deployment(name) },
		func() client.ObjectList { return &appsv1.DeploymentList{} }}
}

func sites() subject {
	return subject{"Sites",
		func(name string) client.Object {
			replicas := int32(2)
			return &Site{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: SiteSpec{Replicas: &replicas}}
		},
		func() client.ObjectList { return &SiteList{} }}
}

// anySites are sites of no Go type.
func anySites() subject {
	return subject{"UnstructuredSites",
		func(name string) client.Object {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
			o.SetGroupVersionKind(siteVersion().WithKind("Site"))
			o.SetName(name)
			o.SetLabels(map[string]string{"app": name})
			return o
		},
		func() client.ObjectList {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(siteVersion().WithKind("SiteList"))
			return list
		}}
}

// work is done with objects of one type in one namespace.
type work struct {
	subject
	client    client.Client
	namespace string
}

func (w *work) named(name string) client.Object {
	o := w.make(name)
	o.SetNamespace(w.namespace)
	return o
}

// made creates an object.
func (w *work) made(t *testing.T, name string) client.Object {
	t.Helper()
	o := w.named(name)
	if err := w.client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// expect reads an object and compares the replicas of a part of it.
func (w *work) expect(t *testing.T, name, part string, want int64) client.Object {
	t.Helper()
	o := w.named(name)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	if got := replicas(o, part); got != want {
		t.Errorf("%s.replicas of %s is %d, want %d", part, name, got, want)
	}
	return o
}

// replicas returns a number of an object; 0 when it is not there.
func replicas(o client.Object, part string) int64 {
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	n, _, _ := unstructured.NestedInt64(content, part, "replicas")
	return n
}

// scaled returns a copy of an object with other replicas in a part of it.
func scaled[T client.Object](t *testing.T, o T, part string, n int64) T {
	t.Helper()
	changed := o.DeepCopyObject().(T)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err == nil {
		err = unstructured.SetNestedField(content, n, part, "replicas")
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, changed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func (w *work) create(t *testing.T) {
	o := w.made(t, "create")
	if o.GetUID() == "" || o.GetResourceVersion() == "" || o.GetGeneration() != 1 {
		t.Errorf("created: %v", o)
	}
	if err := w.client.Create(t.Context(), w.named("create")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created again: %v", err)
	}
	if err := w.client.Create(t.Context(), w.named("dry"), client.DryRunAll); err != nil {
		t.Errorf("dry run: %v", err)
	}
	if err := w.client.Create(t.Context(), scaled(t, w.named("negative"), "spec", -1)); !apierrors.IsInvalid(err) {
		t.Errorf("created with -1 replicas: %v", err)
	}
	w.made(t, "other")
	for _, l := range []struct {
		option client.ListOption
		want   int
	}{
		{client.MatchingLabels{"app": "create"}, 1},
		{client.MatchingFields{"metadata.name": "other"}, 1},
		{client.Limit(1), 1},
		{&client.ListOptions{}, 2},
	} {
		list := w.list()
		if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace), l.option); err != nil || meta.LenList(list) != l.want {
			t.Errorf("list with %v: %d objects, %v; want %d", l.option, meta.LenList(list), err, l.want)
		}
	}
}

func (w *work) update(t *testing.T) {
	o := w.made(t, "update")
	changed := scaled(t, o, "spec", 3)
	if err := w.client.Update(t.Context(), changed); err != nil || changed.GetGeneration() != 2 {
		t.Fatalf("updated: generation %d, %v", changed.GetGeneration(), err)
	}
	if err := w.client.Update(t.Context(), scaled(t, o, "spec", 4)); !apierrors.IsConflict(err) {
		t.Errorf("updated with a stale version: %v", err)
	}
	version := changed.GetResourceVersion()
	if err := w.client.Update(t.Context(), changed); err != nil || changed.GetResourceVersion() != version {
		t.Errorf("updated without a change: version %s after %s, %v", changed.GetResourceVersion(), version, err)
	}
	w.expect(t, "update", "spec", 3)
}

func (w *work) patch(t *testing.T) {
	o := w.made(t, "patch")
	changed := scaled(t, o, "spec", 3)
	if err := w.client.Patch(t.Context(), changed, client.MergeFrom(o)); err != nil {
		t.Fatal(err)
	}
	stale := client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})
	if err := w.client.Patch(t.Context(), scaled(t, o, "spec", 4), stale); !apierrors.IsConflict(err) {
		t.Errorf("patched with a stale version: %v", err)
	}
	raw := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":5}]`))
	if err := w.client.Patch(t.Context(), w.named("patch"), raw); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "patch", "spec", 5)
	if _, typed := o.(*appsv1.Deployment); !typed {
		return
	}
	strategic := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`))
	patched := o.DeepCopyObject().(*appsv1.Deployment)
	if err := w.client.Patch(t.Context(), patched, strategic); err != nil || len(patched.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("strategic merge patch: %d containers, %v", len(patched.Spec.Template.Spec.Containers), err)
	}
}

// configuration returns an object as a manager applies it.
func (w *work) configuration(t *testing.T, name string, n int64) runtime.ApplyConfiguration {
	t.Helper()
	o := scaled(t, w.named(name), "spec", n)
	kind, err := w.client.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	configuration := &unstructured.Unstructured{Object: content}
	configuration.SetGroupVersionKind(kind)
	return client.ApplyConfigurationFromUnstructured(configuration)
}

func (w *work) apply(t *testing.T) {
	ctx, one, two := t.Context(), client.FieldOwner("one"), client.FieldOwner("two")
	if err := w.client.Apply(ctx, w.configuration(t, "apply", 1), one); err != nil {
		t.Fatal(err)
	}
	first := w.expect(t, "apply", "spec", 1)
	if err := w.client.Apply(ctx, w.configuration(t, "apply", 1), one); err != nil {
		t.Fatal(err)
	}
	if again := w.expect(t, "apply", "spec", 1); again.GetResourceVersion() != first.GetResourceVersion() {
		t.Error("an apply that changes nothing has written")
	}
	if err := w.client.Apply(ctx, w.configuration(t, "apply", 4), two); !apierrors.IsConflict(err) {
		t.Errorf("applied what another manager owns: %v", err)
	}
	if err := w.client.Apply(ctx, w.configuration(t, "apply", 4), two, client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	managers := map[string]metav1.ManagedFieldsOperationType{}
	for _, entry := range w.expect(t, "apply", "spec", 4).GetManagedFields() {
		managers[entry.Manager] = entry.Operation
	}
	if managers["one"] != metav1.ManagedFieldsOperationApply || managers["two"] != metav1.ManagedFieldsOperationApply {
		t.Errorf("the managers are %v", managers)
	}
}

func (w *work) status(t *testing.T) {
	o := w.made(t, "status")
	changed := scaled(t, scaled(t, o, "spec", 7), "status", 1)
	if err := w.client.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "status", "spec", 2)
	before := w.expect(t, "status", "status", 1)
	if before.GetGeneration() != 1 {
		t.Errorf("the generation is %d after a change of the status", before.GetGeneration())
	}
	if err := w.client.Status().Patch(t.Context(), scaled(t, before, "status", 2), client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "status", "status", 2)
	if err := w.client.Update(t.Context(), scaled(t, w.expect(t, "status", "spec", 2), "status", 9)); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "status", "status", 2)
}

func (w *work) scale(t *testing.T) {
	o := w.made(t, "scale")
	var scale client.Object = &autoscalingv1.Scale{}
	if _, untyped := o.(*unstructured.Unstructured); untyped {
		scale = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale"}}
	}
	if err := w.client.SubResource("scale").Get(t.Context(), o, scale); err != nil || replicas(scale, "spec") != 2 {
		t.Fatalf("the scale is %v, %v", scale, err)
	}
	if err := w.client.SubResource("scale").Update(t.Context(), o, client.WithSubResourceBody(scaled(t, scale, "spec", 6))); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "scale", "spec", 6)
}

func (w *work) deleteAllOf(t *testing.T) {
	ctx, kept := t.Context(), w.made(t, "kept")
	for i := range 3 {
		o := w.named(fmt.Sprintf("all-%d", i))
		o.SetLabels(map[string]string{"delete": "me"})
		if err := w.client.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	selected := []client.DeleteAllOfOption{client.InNamespace(w.namespace), client.MatchingLabels{"delete": "me"}}
	left := func() int {
		list := w.list()
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace), client.MatchingLabels{"delete": "me"}); err != nil {
			t.Fatal(err)
		}
		return meta.LenList(list)
	}
	if err := w.client.DeleteAllOf(ctx, w.named(""), append(selected, client.DryRunAll)...); err != nil || left() != 3 {
		t.Errorf("dry run: %d left, %v", left(), err)
	}
	if err := w.client.DeleteAllOf(ctx, w.named(""), selected...); err != nil || left() != 0 {
		t.Errorf("%d left, %v", left(), err)
	}
	uid := types.UID("another")
	if err := w.client.Delete(ctx, kept, client.Preconditions{UID: &uid}); !apierrors.IsConflict(err) {
		t.Errorf("deleted in spite of a precondition: %v", err)
	}
	if err := w.client.Delete(ctx, kept); err != nil {
		t.Error(err)
	}
}
