// Package placement holds the admission plugins that compare pods with their node: one that copies the
// labels of its place to them, and one that keeps resizes within what it has. Kubernetes 1.36 has
// both. It serves section "Admission plugins" of the specification.
package placement

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Labels copies the labels of a node that say where it is to a pod that is bound to it or
// created on it. They replace those of the pod. A node that does not exist has none.
type Labels struct {
	Store services.Reader
	Names []string
}

// Mutate adds the labels to a new pod that has a node, or to the binding of a pod.
func (p Labels) Mutate(ctx context.Context, r *review.Review) error {
	node, err := p.node(r)
	if err != nil || node == "" {
		return err
	}
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "nodes"}, Name: node}
	stored, err := p.Store.Get(ctx, services.GetRequest{Key: key, Read: services.Read{Mode: services.AnyRevision}})
	switch {
	case services.IsReason(err, services.ReasonNotFound):
		return nil
	case err != nil:
		return err
	}
	object, err := r.Decoded()
	if err != nil {
		return err
	}
	for _, name := range p.Names {
		value, ok := stored.Labels[name]
		if !ok {
			continue
		}
		if labels := tree.Object(tree.Object(object, "metadata"), "labels"); labels[name] != value {
			labels[name] = value
			r.Changed()
		}
	}
	return nil
}

// node returns the node that a pod is created on or bound to; empty for other requests.
func (p Labels) node(r *review.Review) (string, error) {
	if r.Is(services.OperationCreate, "", "pods") {
		_, spec, err := r.NewPod()
		return tree.Text(spec, "nodeName"), err
	}
	if !r.Is(services.OperationCreate, "", "pods/binding") {
		return "", nil
	}
	binding, err := r.Decoded()
	if err != nil || tree.Text(binding, "target", "kind") != "Node" {
		return "", err
	}
	return tree.Text(binding, "target", "name"), nil
}
