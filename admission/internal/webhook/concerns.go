package webhook

import (
	"slices"

	"github.com/portico-platform/portico/admission/internal/review"
)

// MutatingConcerns reports whether a mutating webhook may be called for requests of the
// operation, type, subresource and scope of a review.
func (w *Webhooks) MutatingConcerns(r *review.Review) bool { return w.concerns(w.Mutating, r) }

// ValidatingConcerns is MutatingConcerns for validating webhooks.
func (w *Webhooks) ValidatingConcerns(r *review.Review) bool { return w.concerns(w.Validating, r) }

func (w *Webhooks) concerns(configurations review.Collection[Configuration], r *review.Review) bool {
	return slices.ContainsFunc(list(configurations), func(h *hook) bool { return w.Matcher.Covers(&h.rules, r) })
}
