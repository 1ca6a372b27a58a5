package delegate

import (
	"context"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
)

// skips reports whether the user skips a service for this request. It is Forbidden (403) for a user who may
// not. Both are recorded for all users.
func (p *Plugin) skips(ctx context.Context, s *Service, r *review.Review) (bool, error) {
	if !slices.Contains(r.Bypass, s.Name) {
		return false, nil
	}
	decision, err := p.Authz.Authorize(ctx, services.Attributes{User: r.User, Verb: admissionservice.Bypass,
		Group: admissionservice.Group, Version: admissionservice.Version, Resource: admissionservice.Resource, Name: s.Name})
	if err != nil {
		return false, err
	}
	allowed := decision.Allowed && !decision.Denied
	outcome := "refused"
	if allowed {
		outcome = "bypassed"
	}
	r.Annotate(map[string]string{fmt.Sprintf("%s.%s/%s", admissionservice.Bypass, admissionservice.Group, s.Name): outcome})
	p.Registry.metrics.bypassed.WithLabelValues(s.Name, outcome).Inc()
	p.Log.WarnContext(ctx, "a request bypasses an admission service", "service", s.Name, "outcome", outcome, "user", r.User.Name,
		"operation", string(r.Operation), "resource", r.Type().String(), "namespace", r.Namespace, "name", r.Name)
	if !allowed {
		return false, services.Forbidden(admissionservice.Group, admissionservice.Resource, s.Name,
			fmt.Sprintf("User %q cannot bypass this admission service: the verb %q on it is needed", r.User.Name, admissionservice.Bypass))
	}
	return true, nil
}
