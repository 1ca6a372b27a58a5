package plugin

import (
	"context"
	"strings"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/admission/internal/usage"
	"github.com/portico-platform/portico/services/admissionservice"
)

// guarded returns the table with plugins that refuse what they are concerned with while an object that configures them
// cannot be read and nothing is known of it. It might be about any request.
func (e Environment) guarded(table []Plugin) []Plugin {
	guards := map[string]func(*review.Review) error{
		"LimitRanger":                review.UnreadableIn(e.LimitRanges, about("", "pods", "persistentvolumeclaims")),
		"ResourceQuota":              review.UnreadableIn(e.Quotas, usage.Concerns),
		"AdmissionServices":          func(*review.Review) error { return e.Delegates.Unreadable() },
		"MutatingAdmissionWebhook":   func(*review.Review) error { return review.Unreadable(e.Mutating) },
		"ValidatingAdmissionWebhook": func(*review.Review) error { return review.Unreadable(e.Validating) },
		"MutatingAdmissionPolicy":    func(*review.Review) error { return review.UnreadableBound(e.Mutations, e.MutationBindings) },
		"ValidatingAdmissionPolicy":  func(*review.Review) error { return review.UnreadableBound(e.Policies, e.PolicyBindings) },
	}
	for i := range table {
		if guard := guards[table[i].Name]; guard != nil {
			table[i] = table[i].guardedBy(func(r *review.Review) error {
				err := guard(r)
				if err != nil && (r.Repairs || e.configures(r)) {
					return nil
				}
				return err
			})
		}
	}
	return table
}

// configures reports whether a request is about an object that configures admission, which must be possible to repair,
// or is a review of access, which stores nothing.
func (e Environment) configures(r *review.Review) bool {
	switch r.Group {
	case e.Vocabulary.Group("admissionregistration."), admissionservice.Group:
		return true
	case e.Vocabulary.Group("authentication."), e.Vocabulary.Group("authorization."):
		return strings.HasSuffix(r.Resource, "reviews")
	}
	return false
}

// guardedBy returns the plugin with a guard before what it does.
func (p Plugin) guardedBy(guard func(*review.Review) error) Plugin {
	before := func(do func(context.Context, *review.Review) error) func(context.Context, *review.Review) error {
		if do == nil {
			return nil
		}
		return func(ctx context.Context, r *review.Review) error {
			if err := guard(r); err != nil {
				return err
			}
			return do(ctx, r)
		}
	}
	concerns, idle := p.Concerns, p.Idle
	p.Mutate, p.Validate = before(p.Mutate), before(p.Validate)
	p.Concerns = func(r *review.Review) bool { return guard(r) != nil || concerns(r) }
	if idle != nil {
		p.Idle = func(r *review.Review) bool { return guard(r) == nil && idle(r) }
	}
	return p
}
