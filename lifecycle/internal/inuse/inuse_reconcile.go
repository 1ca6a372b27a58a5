package inuse

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
)

// reconcile removes the finalizer of a deleted object, unless it is still in use.
func (c *Controller) reconcile(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	found, exists, err := c.seen.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		return 0, err
	}
	object := found.(*unstructured.Unstructured)
	if object.GetDeletionTimestamp() == nil || !slices.Contains(object.GetFinalizers(), c.Finalizer) {
		return 0, nil
	}
	used, err := c.used(ctx, c.client, object)
	if err != nil {
		return 0, err
	}
	if used {
		return 0, worker.ErrLater
	}
	object = object.DeepCopy()
	object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == c.Finalizer }))
	_, err = c.client.Resource(c.Resource).Namespace(name.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	return 0, worker.IgnoreRace(err)
}

// mounted reports whether a pod uses a claim.
func mounted(ctx context.Context, client dynamic.Interface, claim *unstructured.Unstructured) (bool, error) {
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(claim.GetNamespace())
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, each := range list.Items {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(each.Object, &pod); err != nil {
			return false, err
		}
		if uses(&pod, claim.GetName()) {
			return true, nil
		}
	}
	return false, nil
}

// uses reports whether a pod uses a claim now. A pod without a node does not, and will
// not be scheduled while the claim is being deleted.
func uses(pod *corev1.Pod, claim string) bool {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim ||
			v.Ephemeral != nil && pod.Name+"-"+v.Name == claim
	})
}

// bound reports whether a claim uses a volume.
func bound(_ context.Context, _ dynamic.Interface, volume *unstructured.Unstructured) (bool, error) {
	phase, _, err := unstructured.NestedString(volume.Object, "status", "phase")
	return phase == string(corev1.VolumeBound), err
}

// classUsers are the types that name a class, with the fields that do. A claim changes from
// one class to another, and its status has both.
var classUsers = []struct {
	resource string
	fields   [][]string
}{
	{"persistentvolumes", [][]string{{"spec", "volumeAttributesClassName"}}},
	{"persistentvolumeclaims", [][]string{{"spec", "volumeAttributesClassName"}, {"status", "currentVolumeAttributesClassName"},
		{"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"}}},
}

// usersPerPage is how many possible users of a class are read at once.
const usersPerPage = 500

// named reports whether a volume or a claim names a class.
func named(ctx context.Context, client dynamic.Interface, class *unstructured.Unstructured) (bool, error) {
	for _, users := range classUsers {
		for next := ""; ; {
			list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: users.resource}).
				List(ctx, metav1.ListOptions{Limit: usersPerPage, Continue: next})
			if err != nil {
				return false, err
			}
			for _, user := range list.Items {
				for _, field := range users.fields {
					if name, _, err := unstructured.NestedString(user.Object, field...); err != nil || name == class.GetName() {
						return true, err
					}
				}
			}
			if next = list.GetContinue(); next == "" {
				break
			}
		}
	}
	return false, nil
}
