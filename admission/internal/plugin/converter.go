package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/delegate"
	"github.com/portico-platform/portico/admission/internal/policy"
	"github.com/portico-platform/portico/admission/internal/replicas"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/admission/internal/webhook"
	"github.com/portico-platform/portico/services"
)

// converter ends a review that may need a converter and has none, before any webhook or policy is called: the
// review is repeated with one, and none must be called twice.
type converter struct {
	webhooks webhook.Webhooks
	services *delegate.Plugin
	policies *policy.Mutator // nil before release 1.36
}

func (c converter) mutate(_ context.Context, r *review.Review) error {
	if c.webhooks.NeedsConverter(c.webhooks.Mutating, r) || c.services.NeedsConverter(replicas.Mutate, r) || c.policies != nil && c.policies.NeedsConverter(r) {
		return services.ErrNoConverter
	}
	return nil
}

func (c converter) validate(_ context.Context, r *review.Review) error {
	if c.webhooks.NeedsConverter(c.webhooks.Validating, r) || c.services.NeedsConverter(replicas.Validate, r) {
		return services.ErrNoConverter
	}
	return nil
}
