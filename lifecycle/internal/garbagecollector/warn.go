package garbagecollector

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// warn records an event when an object names an owner in an invalid place, one event
// per reference. A failure to write it is ignored.
func (c *Controller) warn(ctx context.Context, o *object, r metav1.OwnerReference) {
	namespace := o.namespace
	if namespace == "" {
		namespace = "default"
	}
	reference := fnv.New64a()
	fmt.Fprint(reference, o.uid, r.UID)
	now := c.Clock.Now().UTC().Format(time.RFC3339)
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"name": fmt.Sprintf("%s.%x", o.name, reference.Sum64()), "namespace": namespace},
		"involvedObject": map[string]any{
			"apiVersion": o.kind.GroupVersion().String(), "kind": o.kind.Kind, "namespace": o.namespace, "name": o.name, "uid": string(o.uid),
		},
		"type": "Warning", "reason": "OwnerRefInvalidNamespace",
		"message": fmt.Sprintf("the owner %s %q (%s, uid %s) is not in the namespace of this object and is ignored", r.Kind, r.Name, r.APIVersion, r.UID),
		"source":  map[string]any{"component": "garbage-collector-controller"}, "count": int64(1), "firstTimestamp": now, "lastTimestamp": now,
	}}
	events := c.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"})
	_, err := events.Namespace(namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
		c.Log.Warn("writing an event failed", "controller", Name, "namespace", o.namespace, "name", o.name, "error", err)
	}
}
