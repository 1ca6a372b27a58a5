package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// topologyLabels copies the labels of a node that say where it is to a pod that is bound to it or
// created on it. They replace those of the pod. A node that does not exist has none.
type topologyLabels struct {
	store  services.Reader
	labels []string
}

func (p topologyLabels) mutate(ctx context.Context, r *review.Review) error {
	node, err := p.node(r)
	if err != nil || node == "" {
		return err
	}
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "nodes"}, Name: node}
	stored, err := p.store.Get(ctx, services.GetRequest{Key: key, Read: services.Read{Mode: services.AnyRevision}})
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
	for _, name := range p.labels {
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
func (p topologyLabels) node(r *review.Review) (string, error) {
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
