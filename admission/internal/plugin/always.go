package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
)

// alwaysDeny rejects every request that passes admission.
func alwaysDeny(_ context.Context, r *review.Review) error {
	return r.Forbid("admission control is denying all modifications")
}
