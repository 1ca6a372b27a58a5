package plugin

import "context"

// alwaysDeny rejects every request that passes admission.
func alwaysDeny(_ context.Context, r *Review) error {
	return r.Forbid("admission control is denying all modifications")
}
