package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

var namespaceType = resource.GroupResource{Resource: "namespaces"}

// Namespace is the part of a stored namespace that admission looks at.
type Namespace struct{ Terminating bool }

// ParseNamespace reads a stored namespace.
func ParseNamespace(o services.Object) (Namespace, error) {
	var stored struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	err := json.Unmarshal(o.JSON, &stored)
	return Namespace{Terminating: stored.Metadata.DeletionTimestamp != nil || stored.Status.Phase == "Terminating"}, err
}

// namespaceLifecycle keeps content out of namespaces that are missing or on their
// way out, and keeps the namespaces that every cluster needs.
type namespaceLifecycle struct {
	namespaces Collection[Namespace]
	store      services.Reader
	immortal   []string
	// reviews is the group whose local access reviews are answered and not stored,
	// and so may name any namespace.
	reviews string
}

func (p namespaceLifecycle) validate(ctx context.Context, r *Review) error {
	if r.Is(services.OperationDelete, "", "namespaces") && slices.Contains(p.immortal, r.Name) {
		return r.Forbid("this namespace may not be deleted")
	}
	if r.Operation != services.OperationCreate || r.Namespace == "" || r.Type() == namespaceType || r.Group == p.reviews {
		return nil
	}
	if known, ok := p.namespaces.Get("", r.Namespace); ok && !known.Terminating {
		return nil
	}
	// The mirror may be a moment behind: only the newest state refuses.
	stored, err := p.store.Get(ctx, services.GetRequest{Key: resource.Key{GroupResource: namespaceType, Name: r.Namespace}})
	if err != nil {
		return err
	}
	now, err := ParseNamespace(stored)
	if err != nil {
		return fmt.Errorf("reading namespace %q: %w", r.Namespace, err)
	}
	if !now.Terminating {
		return nil
	}
	refusal := r.Forbid("unable to create new content in namespace %s because it is being terminated", r.Namespace)
	refusal.Details.Causes = []services.StatusCause{{
		Reason: "NamespaceTerminating", Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace),
	}}
	return refusal
}
