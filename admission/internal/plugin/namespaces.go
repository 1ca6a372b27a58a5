package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

var namespaceType = resource.GroupResource{Resource: "namespaces"}

// Namespace is the part of a stored namespace that admission reads.
type Namespace struct {
	Terminating bool
	Labels      map[string]string
	// NodeSelector is the node selector of its pods, from an annotation.
	NodeSelector string
}

// NamespaceParser returns a parser of stored namespaces.
func NamespaceParser(v vocabulary.Vocabulary) func(services.Object) (Namespace, error) {
	selector := v.Qualified("scheduler.alpha", "node-selector")
	return func(o services.Object) (Namespace, error) {
		var stored struct {
			Metadata struct {
				DeletionTimestamp *string           `json:"deletionTimestamp"`
				Labels            map[string]string `json:"labels"`
				Annotations       map[string]string `json:"annotations"`
			} `json:"metadata"`
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		}
		err := json.Unmarshal(o.JSON, &stored)
		return Namespace{Terminating: stored.Metadata.DeletionTimestamp != nil || stored.Status.Phase == "Terminating",
			Labels: stored.Metadata.Labels, NodeSelector: stored.Metadata.Annotations[selector]}, err
	}
}

// namespaces reads namespaces. Their mirror may lag behind the store.
type namespaces struct {
	mirror review.Collection[Namespace]
	store  services.Reader
	parse  func(services.Object) (Namespace, error)
}

// get returns a namespace from the mirror, or from the store if the mirror lacks it.
func (n namespaces) get(ctx context.Context, name string) (Namespace, error) {
	if known, ok := n.mirror.Get("", name); ok {
		return known, nil
	}
	return n.read(ctx, name)
}

// read returns the newest state of a namespace.
func (n namespaces) read(ctx context.Context, name string) (Namespace, error) {
	stored, err := n.store.Get(ctx, services.GetRequest{Key: resource.Key{GroupResource: namespaceType, Name: name}})
	if err != nil {
		return Namespace{}, err
	}
	now, err := n.parse(stored)
	if err != nil {
		return now, fmt.Errorf("reading namespace %q: %w", name, err)
	}
	return now, nil
}

func (n namespaces) labels(ctx context.Context, name string) (map[string]string, error) {
	known, err := n.get(ctx, name)
	return known.Labels, err
}
