package nodes

import (
	"context"
	"fmt"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/references"
	"github.com/portico-platform/portico/services/tree"
)

// pod lets a node create and delete its mirror pods, delete and evict the pods that run
// on it, and write their status.
func (p Plugin) pod(ctx context.Context, r *review.Review, name string) error {
	switch subresource, operation := r.Subresource, r.Operation; {
	case subresource == "" && operation == services.OperationCreate:
		return p.mirror(ctx, r, name)
	case subresource == "" && operation == services.OperationDelete:
		return p.runs(ctx, r, name, fmt.Sprintf("node %q can only delete pods with spec.nodeName set to itself", name))
	case subresource == "":
		return r.Forbid("unexpected operation %q, node %q can only create and delete mirror pods", operation, name)
	case subresource == "status" && operation == services.OperationUpdate:
		return p.podStatus(r, name)
	case subresource == "eviction" && operation == services.OperationCreate:
		return p.runs(ctx, r, name, fmt.Sprintf("node %s can only evict pods with spec.nodeName set to itself", name))
	case subresource == "status":
		return r.Forbid("unexpected operation %q", operation)
	case subresource == "eviction":
		return r.Forbid("unexpected operation %s", operation)
	}
	return r.Forbid("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", r.Subresource)
}

// runs refuses when the stored pod of a review runs elsewhere.
func (p Plugin) runs(ctx context.Context, r *review.Review, name, refusal string) error {
	podName := r.Name
	if podName == "" {
		object, err := r.Decoded()
		if err != nil {
			return err
		}
		if podName = tree.Text(object, "metadata", "name"); podName == "" {
			return r.Forbid("could not determine pod from request data")
		}
	}
	pod, err := p.stored(ctx, "pods", r.Namespace, podName)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != name {
		return r.Forbid("%s", refusal)
	}
	return nil
}

func (p Plugin) podStatus(r *review.Review, name string) error {
	now, err := r.Decoded()
	if err != nil {
		return err
	}
	before, err := tree.Decode(r.OldObject)
	if err != nil {
		return fmt.Errorf("reading the stored pod: %w", err)
	}
	if tree.Text(before, "spec", "nodeName") != name {
		return r.Forbid("node %q can only update pod status for pods with spec.nodeName set to itself", name)
	}
	old, labels := tree.Child(before, "metadata", "labels"), tree.Child(now, "metadata", "labels")
	if len(old)+len(labels) > 0 && !tree.Equal(old, labels) {
		return r.Forbid("node %q cannot update labels through pod status", name)
	}
	if p.later() {
		return claimsOfStatus(r, name, now, before)
	}
	return nil
}

// mirror lets a node create pods that show what it runs by itself, and which use nothing
// that it could not read.
func (p Plugin) mirror(ctx context.Context, r *review.Review, name string) error {
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	if annotation := p.Vocabulary.Qualified("", "config.mirror"); tree.Child(pod, "metadata", "annotations")[annotation] == nil {
		return r.Forbid("pod does not have %q annotation, node %q can only create mirror pods", annotation, name)
	}
	spec := tree.Child(pod, "spec")
	if tree.Text(spec, "nodeName") != name {
		return r.Forbid("node %q can only create pods with spec.nodeName set to itself", name)
	}
	if err := p.owner(ctx, r, name); err != nil {
		return err
	}
	if tree.Text(spec, "serviceAccountName") != "" {
		return r.Forbid("node %q can not create pods that reference a service account", name)
	}
	if used := references.OfPod(spec); len(used) > 0 {
		return r.Forbid("node %q can not create pods that reference %s", name, used[0].Resource)
	}
	if what := referenced(spec); p.later() && what != "" {
		return r.Forbid("node %q can not create pods that reference %s", name, what)
	}
	return nil
}

// owner refuses mirror pods whose one owner is not the node, with its uid.
func (p Plugin) owner(ctx context.Context, r *review.Review, name string) error {
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	owners := tree.List(pod, "metadata", "ownerReferences")
	if len(owners) > 1 {
		return r.Forbid("node %q can only create pods with a single owner reference set to itself", name)
	}
	owner := map[string]any{}
	if len(owners) == 1 {
		owner, _ = owners[0].(map[string]any)
	}
	switch {
	case tree.Text(owner, "apiVersion") != "v1" || tree.Text(owner, "kind") != "Node" || tree.Text(owner, "name") != name:
		return r.Forbid("node %q can only create pods with an owner reference set to itself", name)
	case owner["controller"] != true:
		return r.Forbid("node %q can only create pods with a controller owner reference set to itself", name)
	case owner["blockOwnerDeletion"] == true:
		return r.Forbid("node %q must not set blockOwnerDeletion on an owner reference", name)
	}
	node, err := p.stored(ctx, "nodes", "", name)
	if err != nil {
		return err
	}
	if uid := tree.Text(owner, "uid"); uid != node.Metadata.UID {
		return r.Forbid("node %s UID mismatch: expected %s got %s", name, uid, node.Metadata.UID)
	}
	return nil
}
