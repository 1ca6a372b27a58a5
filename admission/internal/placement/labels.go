// Package placement holds the admission plugins that compare pods with their node: one that copies the
// labels of its place to them, and one that keeps resizes within what it has. Kubernetes 1.36 has
// both. It serves section "Admission plugins" of the specification.
package placement

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Place is where a node is: the values of those of its labels that say so.
type Place map[string]string

// Parser reads the place of a stored node.
func Parser(v vocabulary.Vocabulary) func(services.Object) (Place, error) {
	names := []string{v.Qualified("topology", "zone"), v.Qualified("topology", "region")}
	return func(o services.Object) (Place, error) {
		var stored struct {
			Metadata struct {
				Labels Place `json:"labels"`
			} `json:"metadata"`
		}
		err := json.Unmarshal(o.JSON, &stored)
		maps.DeleteFunc(stored.Metadata.Labels, func(name, _ string) bool { return !slices.Contains(names, name) })
		return stored.Metadata.Labels, err
	}
}

// Labels copies the labels of a node that say where it is to a pod that is bound to it or
// created on it. They replace those of the pod. A node that does not exist has none.
type Labels struct{ Nodes review.Collection[Place] }

// Mutate adds the labels to a new pod that has a node, or to the binding of a pod.
func (p Labels) Mutate(_ context.Context, r *review.Review) error {
	node, err := p.node(r)
	if err != nil || node == "" {
		return err
	}
	place, _ := p.Nodes.Get("", node)
	if len(place) == 0 {
		return nil
	}
	object, err := r.Decoded()
	if err != nil {
		return err
	}
	labels := tree.Object(tree.Object(object, "metadata"), "labels")
	for name, value := range place {
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
