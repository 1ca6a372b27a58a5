package garbagecollector

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/services/kit/worker"
)

// at returns the client for an object's resource and namespace.
func (c *Controller) at(o *object) dynamic.ResourceInterface {
	return c.Metadata.Resource(o.kind.GroupVersionResource).Namespace(o.namespace)
}

// delete deletes an object if it has not changed since it was read. A policy for its
// own dependents that the object already has stays.
func (c *Controller) delete(ctx context.Context, o *object, live *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	switch {
	case slices.Contains(live.GetFinalizers(), metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(live.GetFinalizers(), metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	c.Log.Debug("deleting an object without owners", "controller", Name, "type", o.kind.Resource, "namespace", o.namespace, "name", o.name)
	return worker.IgnoreRace(c.at(o).Delete(ctx, o.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &policy,
	}))
}

// release removes references from an object.
func (c *Controller) release(ctx context.Context, o *object, drop func(metav1.OwnerReference) bool) error {
	live, err := c.read(ctx, o)
	if live == nil || err != nil {
		return err
	}
	return c.releaseFrom(ctx, o, live, drop)
}

// releaseFrom is release for an object that was read.
func (c *Controller) releaseFrom(ctx context.Context, o *object, live *unstructured.Unstructured, drop func(metav1.OwnerReference) bool) error {
	owners := live.GetOwnerReferences()
	kept := slices.DeleteFunc(slices.Clone(owners), drop)
	if len(kept) == len(owners) {
		return nil
	}
	return c.patch(ctx, o, live, "ownerReferences", kept)
}

// unblock sets blockOwnerDeletion to false in the references of an object.
func (c *Controller) unblock(ctx context.Context, o *object, live *unstructured.Unstructured) error {
	owners := live.GetOwnerReferences()
	blocks := false
	for i := range owners {
		blocks = blocks || owners[i].BlockOwnerDeletion != nil && *owners[i].BlockOwnerDeletion
		owners[i].BlockOwnerDeletion = new(bool)
	}
	if !blocks {
		return nil
	}
	if err := c.patch(ctx, o, live, "ownerReferences", owners); err != nil {
		return err
	}
	return worker.ErrLater // to be deleted in its new state
}

// removeFinalizer removes a finalizer from an object, which may complete its deletion.
func (c *Controller) removeFinalizer(ctx context.Context, o *object, finalizer string) error {
	live, err := c.read(ctx, o)
	if live == nil || err != nil || !slices.Contains(live.GetFinalizers(), finalizer) {
		return err
	}
	kept := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == finalizer })
	return c.patch(ctx, o, live, "finalizers", kept)
}

// patch replaces a list in the metadata of an object, if it has not changed since it
// was read. All types support merge patches.
func (c *Controller) patch(ctx context.Context, o *object, live *unstructured.Unstructured, field string, list any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), field: list,
	}})
	if err != nil {
		return err
	}
	_, err = c.at(o).Patch(ctx, o.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return worker.IgnoreRace(err)
}
