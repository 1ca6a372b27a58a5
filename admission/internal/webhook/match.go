package webhook

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// matches reports whether a webhook is to be called for a request: one of its rules, both
// of its selectors and all of its conditions have to match. as is the type of the matching
// rule, in whose version the webhook receives the objects.
func (w *Webhooks) matches(ctx context.Context, h *hook, r *review.Review) (as services.ServedType, ok bool, err error) {
	if as, ok = h.covers(r); !ok || w.exempt(r) {
		return as, false, nil
	}
	if ok, err = h.selectors.Select(ctx, r, w.Labels); !ok || err != nil {
		return as, false, err
	}
	ok, err = w.meets(ctx, called{hook: h, as: as}, r)
	return as, ok, err
}

// meets reports whether a request meets the conditions of a webhook. If that cannot be
// decided, the failure policy Ignore skips the webhook, and the policy Fail refuses the
// request with Forbidden (403).
func (w *Webhooks) meets(ctx context.Context, h called, r *review.Review) (bool, error) {
	if len(h.conditions) == 0 {
		return true, nil
	}
	request, err := r.Expressions(ctx, w.Expressions, h.as)
	if err != nil {
		return false, notConverted(ctx, h.hook, err)
	}
	meets, err := w.Expressions.Match(ctx, h.conditions, request)
	switch {
	case ctx.Err() != nil:
		return false, services.AsStatus(ctx.Err())
	case err != nil && h.failOpen:
		w.Log.WarnContext(ctx, "the match conditions of a webhook failed and it is skipped", "webhook", h.name, "configuration", h.configuration, "error", err)
		return false, nil
	case err != nil:
		return false, r.Forbid("%v", err)
	}
	return meets, nil
}

// covers returns the type of the request if a rule names it. With matchPolicy Equivalent it is
// otherwise the first type that a rule names and that serves the same objects.
func (h *hook) covers(r *review.Review) (as services.ServedType, ok bool) {
	own := r.Own()
	for i := range h.rules {
		if match.Covers(&h.rules[i], own, r) {
			return own, true
		}
	}
	if !h.equivalent {
		return own, false
	}
	for i := range h.rules {
		for _, served := range r.Served {
			if match.Covers(&h.rules[i], served, r) {
				return served, true
			}
		}
		// A front door of an earlier release names no types: any version of the group will do.
		if other := h.rules[i]; len(r.Served) == 0 {
			other.APIVersions = []string{"*"}
			if match.Covers(&other, own, r) {
				return own, true
			}
		}
	}
	return own, false
}
