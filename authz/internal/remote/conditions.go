package remote

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/portico-platform/portico/services"
)

// selects reports whether the service is asked about a request. The error means that no
// condition is false and one cannot be evaluated.
func (w *Webhook) selects(ctx context.Context, a services.Attributes) (bool, error) {
	if w.config.Conditions == nil {
		return true, nil
	}
	return w.config.Conditions.Eval(ctx, &authorizationv1.SubjectAccessReview{Spec: reviewed(a)})
}

// reviewed is a request as conditions see it, in version v1.
func reviewed(a services.Attributes) authorizationv1.SubjectAccessReviewSpec {
	s := authorizationv1.SubjectAccessReviewSpec{User: a.User.Name, UID: a.User.UID, Groups: a.User.Groups}
	if len(a.User.Extra) > 0 {
		s.Extra = make(map[string]authorizationv1.ExtraValue, len(a.User.Extra))
		for name, values := range a.User.Extra {
			s.Extra[name] = values
		}
	}
	if a.Path != "" {
		s.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return s
	}
	s.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Version: a.Version,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name}
	return s
}
