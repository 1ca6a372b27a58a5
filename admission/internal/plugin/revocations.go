package plugin

import (
	"context"
	"slices"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/revocation"
)

// revoking rejects Revocations that name a user or group of the system, unless the writer has
// the verb revoke on it: whoever may revoke the credentials of people must not be able to stop
// the suite, its nodes or its administrators by that.
type revoking struct{ authz services.Authz }

func (p revoking) validate(ctx context.Context, r *review.Review) error {
	if r.Resource != revocation.Resource || r.Subresource != "" || r.Operation != services.OperationCreate && r.Operation != services.OperationUpdate {
		return nil
	}
	spec, err := revocation.Decode(r.Object)
	if err != nil {
		return services.BadRequest("the object is not readable: %v", err)
	}
	kind, name, ok := spec.System()
	if !ok || slices.Contains(r.User.Groups, services.GroupMasters) {
		return nil
	}
	decision, err := p.authz.Authorize(ctx, services.Attributes{User: r.User, Verb: revocation.Verb,
		Group: revocation.Group, Version: revocation.Version, Resource: kind, Name: name})
	if err != nil || decision.Allowed {
		return err
	}
	return r.Forbid("user %q may not %s %s %q of the system", r.User.Name, revocation.Verb, kind, name)
}
