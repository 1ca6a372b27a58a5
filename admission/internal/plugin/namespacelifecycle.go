package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// namespaceLifecycle rejects the creation of objects in namespaces that are missing or
// terminating, and the deletion of immortal namespaces.
type namespaceLifecycle struct {
	namespaces namespaces.Known
	immortal   []string
	// reviews is the group of LocalSubjectAccessReviews, which are never stored and so may
	// name a namespace that does not exist.
	reviews string
}

func (namespaceLifecycle) concerns(r *review.Review) bool {
	return r.Operation == services.OperationCreate || r.Type() == namespaces.Type
}

// idle reports whether the namespace of a review exists and is not terminating, as far as is
// known. Requests about namespaces themselves are not idle.
func (p namespaceLifecycle) idle(r *review.Review) bool {
	known, ok := p.namespaces.Mirror.Get("", r.Namespace)
	return ok && !known.Terminating && r.Type() != namespaces.Type
}

// admit runs in the mutating phase, before other plugins wait for objects that will never
// exist, and again in the validating phase, because the namespace may have been deleted
// meanwhile.
func (p namespaceLifecycle) admit(ctx context.Context, r *review.Review) error {
	if r.Is(services.OperationDelete, "", "namespaces") && slices.Contains(p.immortal, r.Name) {
		return r.Forbid("this namespace may not be deleted")
	}
	if r.Operation != services.OperationCreate || r.Namespace == "" || r.Type() == namespaces.Type || r.Group == p.reviews {
		return nil
	}
	if known, ok := p.namespaces.Mirror.Get("", r.Namespace); ok && !known.Terminating {
		return nil
	}
	now, err := p.namespaces.Read(ctx, r.Namespace)
	if err != nil {
		return err
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
