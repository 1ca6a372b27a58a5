package writes

import (
	"context"
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services/tree"
)

// mutate runs mutating admission on the object, which has no managedFields here.
func (h *Handlers) mutate(ctx context.Context, w *writeRequest, c *current, d desired) (a admitted, err error) {
	review, err := w.review(ctx, c, d.tree)
	if err != nil {
		return a, err
	}
	warned := w.admission.Warnings()
	if w.showsTree(review) {
		a, d.tree, err = h.mutateTree(ctx, w, c, d.tree, review)
	} else {
		a, d.tree, err = h.mutateJSON(ctx, w, c, d.tree, review)
	}
	a.review, a.warned = review, warned
	if err != nil || d.tree == nil {
		return a, err
	}
	w.dedupOwnerReferences(d.tree, true)
	d.strict = nil // reported
	if err := h.prepare(ctx, w, c, d); err != nil {
		return a, err
	}
	s := strategyOf(w, c)
	s.Settle(d.tree, c.tree)
	if c.exists() {
		s.Count(d.tree, c.tree)
	}
	a, err = w.encoded(d.tree)
	a.review = review
	return a, err
}

// showsTree reports whether admission receives the object without encoding. What a subresource
// writes may share parts with the current object, which admission must not change.
func (w *writeRequest) showsTree(r *admit.Review) bool {
	return w.req.Subresource == nil && r.TakesTrees()
}

// mutateTree sends the object as a tree, and encodes it if admission has not changed it;
// otherwise it returns the changed one.
func (h *Handlers) mutateTree(ctx context.Context, w *writeRequest, c *current, object map[string]any, r *admit.Review) (a admitted, changed map[string]any, err error) {
	before := maps.Clone(object) // of which admission may change all but the status and the fields of metadata
	before["metadata"] = maps.Clone(strategy.Metadata(object))
	if status, ok := object["status"]; ok {
		before["status"] = tree.Copy(status)
	}
	mutated, err := r.MutateTree(ctx, admit.Object{Tree: object, Owners: w.req.Engine.OwnerTypes(object)})
	if err == nil && mutated != nil {
		changed, err = h.takeMutated(w, c, before, mutated)
	} else if err == nil {
		a, err = w.encoded(object)
		a.shown = a.json
	}
	return a, changed, err
}

// mutateJSON sends the object as JSON. It returns the object if admission has changed it.
func (h *Handlers) mutateJSON(ctx context.Context, w *writeRequest, c *current, object map[string]any, r *admit.Review) (a admitted, changed map[string]any, err error) {
	if a, err = w.encoded(object); err != nil {
		return a, nil, err
	}
	a.review = r
	shown, err := w.shown(a)
	if err != nil {
		return a, nil, err
	}
	a.shown = shown.JSON
	encoded, err := h.reviewed(ctx, w, c, &a, shown)
	if err == nil && encoded != nil {
		var mutated map[string]any
		if mutated, err = tree.Decode(encoded); err == nil {
			changed, err = h.takeMutated(w, c, object, mutated)
		}
	}
	return a, changed, err
}

// takeMutated returns the object that mutating admission made of before. Fields that the
// service or other subresources write are restored. A changed identity is an error.
func (h *Handlers) takeMutated(w *writeRequest, c *current, before, mutated map[string]any) (map[string]any, error) {
	shown, err := w.subject.Show(before)
	if err != nil {
		return nil, err
	}
	if err := typesystem.CheckIdentity(shown, mutated); err != nil {
		return nil, err
	}
	typesystem.TakeManagedFields(mutated) // admission does not say who owns what
	kept, err := w.subject.Put(before, mutated)
	if err != nil {
		return nil, err
	}
	strategyOf(w, c).RestoreAfterMutation(kept, before, c.tree)
	return kept, nil
}
