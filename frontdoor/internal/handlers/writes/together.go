package writes

import (
	"context"
	"errors"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/formats"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/services"
)

// reviewed runs mutating admission, and validating admission in the same call where that saves
// one. The rules of the type, which come between the two, are then applied first: they hold
// for the object that mutating admission has not changed. If one is broken, mutating
// admission may repair it, and runs alone. Where mutating admission is expected to change the
// object, it is validated in the same call if that has no effect; the rules are applied afterwards.
func (h *Handlers) reviewed(ctx context.Context, w *writeRequest, c *current, a *admitted, shown admit.Object) (changed []byte, err error) {
	switch {
	case w.bodyType != w.req.Type:
		return a.review.Mutate(ctx, shown)
	case !a.review.Joins():
		return a.review.MutateEarly(ctx, shown)
	case h.applyRules(ctx, w, c, *a) != nil:
		return a.review.Mutate(ctx, shown)
	}
	changed, err = a.review.Both(ctx, shown)
	a.ruled = err == nil && changed == nil
	return changed, err
}

// applyRules applies the validation rules of the type.
func (h *Handlers) applyRules(ctx context.Context, w *writeRequest, c *current, a admitted) error {
	r := w.req
	err := r.Engine.Validate(ctx, schema.Change{Type: r.Type, Subresource: r.SubresourceName(), Object: a.tree, Old: c.tree, Feature: r.Engine.FeatureOn, Warn: w.admission.Warn})
	if !r.Type.Behavior.DefinesTypes || r.Subresource != nil {
		return err
	}
	var invalid *services.Status
	switch {
	case err == nil:
		return h.validateDefinition(w, c, a)
	case errors.As(err, &invalid) && invalid.Reason == services.ReasonInvalid:
		return h.validateDefinition(w, c, a, invalid.Details.Causes...)
	}
	return err
}

// validateDefinition applies the validation rules of CustomResourceDefinitions, which
// depend on the other types. The error also has the causes that were found before.
func (h *Handlers) validateDefinition(w *writeRequest, c *current, a admitted, found ...services.StatusCause) error {
	rules := crd.Rules{Vocabulary: h.Vocabulary, Types: w.req.Engine.Types, Schemas: w.req.Engine.Schemas, Expressions: w.req.Engine.Expressions}
	err := rules.Check(a.tree, c.tree, found...)
	if err == nil {
		w.admission.Warn(formats.Warnings(w.req.Engine.Types.Release(), a.tree, c.tree)...)
	}
	return err
}
