// Package placement holds the admission plugins that read the node of a pod: PodTopologyLabels copies the
// topology labels of the node to the pod, and PodResizeValidator rejects resizes that do not fit it. Kubernetes
// 1.36 has both. It serves section "Admission plugins" of the specification.
package placement

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Topology holds the topology labels (zone and region) of a node, those that it has.
type Topology map[string]string

// Parser returns a parser of stored Nodes.
func Parser(v vocabulary.Vocabulary) func(services.Object) (Topology, error) {
	names := []string{v.Qualified("topology", "zone"), v.Qualified("topology", "region")}
	return func(o services.Object) (Topology, error) {
		t := Topology{}
		for _, name := range names {
			if value, ok := o.Labels[name]; ok {
				t[name] = value
			}
		}
		return t, nil
	}
}

// Labels copies the topology labels (zone and region) of a node to a pod that is bound to it or created on
// it. They replace those of the pod. A node that does not exist has none.
type Labels struct{ Nodes review.Collection[Topology] }

// Mutate adds the labels to a new pod that has a node, or to the binding of a pod.
func (p Labels) Mutate(_ context.Context, r *review.Review) error {
	node, err := p.node(r)
	if err != nil || node == "" {
		return err
	}
	topology, _ := p.Nodes.Get("", node)
	if len(topology) == 0 {
		return nil
	}
	object, err := r.Decoded()
	if err != nil {
		return err
	}
	labels := tree.Object(tree.Object(object, "metadata"), "labels")
	for name, value := range topology {
		if labels[name] != value {
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
