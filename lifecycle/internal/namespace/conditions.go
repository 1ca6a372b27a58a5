package namespace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// condition is one condition of the namespace, with its reasons and messages.
type condition struct {
	kind             string
	trouble, fine    string // reasons
	message, allWell string
}

// report writes the findings of a sweep into the status of the namespace, and returns
// the namespace as stored.
func (c *Controller) report(ctx context.Context, ns *unstructured.Unstructured, found findings) (*unstructured.Unstructured, error) {
	before, _, _ := unstructured.NestedSlice(ns.Object, "status", "conditions")
	after := slices.Clone(before)
	for _, line := range found.conditions() {
		after = line.set(after, c.Clock.Now())
	}
	phase, _, _ := unstructured.NestedString(ns.Object, "status", "phase")
	if phase == "Terminating" && reflect.DeepEqual(before, after) {
		return ns, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": ns.GetUID(), "resourceVersion": ns.GetResourceVersion()},
		"status":   map[string]any{"phase": "Terminating", "conditions": after},
	})
	if err != nil {
		return nil, err
	}
	return c.namespaces.Patch(ctx, ns.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
}

// conditions converts the findings to messages.
func (f findings) conditions() []condition {
	discovery, malformed := "", ""
	if f.discovery != nil {
		discovery = f.discovery.Error()
	}
	if len(f.malformed) > 0 {
		malformed = "not understood: " + strings.Join(f.malformed, ", ")
	}
	failures := ""
	if err := errors.Join(f.failures...); err != nil {
		failures = err.Error()
	}
	return []condition{
		{"NamespaceDeletionDiscoveryFailure", "DiscoveryFailed", "ResourcesDiscovered", discovery, "all resource types are known"},
		{"NamespaceDeletionGroupVersionParsingFailure", "GroupVersionParsingFailed", "ParsedGroupVersions", malformed, "all group versions are understood"},
		{"NamespaceDeletionContentFailure", "ContentDeletionFailed", "ContentDeleted", failures, "deletion of all content was accepted"},
		{"NamespaceContentRemaining", "SomeResourcesRemain", "ContentRemoved", tally(f.remaining), "no content is left"},
		{"NamespaceFinalizersRemaining", "SomeFinalizersRemain", "ContentHasNoFinalizers", tally(f.finalizers), "no finalizer holds content"},
	}
}

// tally formats counts, sorted by name; empty if there are none.
func tally[K comparable](counts map[K]int) string {
	lines := make([]string, 0, len(counts))
	for key, n := range counts {
		lines = append(lines, fmt.Sprintf("%v: %d", key, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// set sets the condition. Its transition time changes only with its status.
func (c condition) set(list []any, now time.Time) []any {
	status, reason, message := "False", c.fine, c.allWell
	if c.message != "" {
		status, reason, message = "True", c.trouble, c.message
	}
	next := map[string]any{"type": c.kind, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339)}
	for i, each := range list {
		old, _ := each.(map[string]any)
		if old["type"] != c.kind {
			continue
		}
		if old["status"] == status {
			next["lastTransitionTime"] = cmp.Or(old["lastTransitionTime"], next["lastTransitionTime"])
		}
		list[i] = next
		return list
	}
	return append(list, next)
}
