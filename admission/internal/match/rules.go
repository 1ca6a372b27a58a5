package match

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Rules select the requests for which a webhook or an admission service is called.
type Rules struct {
	// Who is called, for messages.
	Who       string
	Rules     []admissionregistrationv1.RuleWithOperations
	Selectors Selectors
	// Equivalent is matchPolicy Equivalent: the rules match all groups and versions that
	// serve the named resources.
	Equivalent bool
	// Conditions are expressions that must all be true. FailOpen means that a request for
	// which they cannot be evaluated does not match; otherwise it is refused.
	Conditions []cel.MatchCondition
	FailOpen   bool
}

// Matcher matches requests with rules. Nobody is asked about the configurations of webhooks
// and admission services, so that a wrong one can be repaired.
type Matcher struct {
	Labels      Labels      // for namespace selectors
	Expressions *cel.Engine // for conditions
	Vocabulary  vocabulary.Vocabulary
	Log         *slog.Logger
}

// Matches reports whether one of the rules, both selectors and all conditions match a
// request. as is the type of the matching rule, in whose version the objects are sent.
func (m Matcher) Matches(ctx context.Context, by *Rules, r *review.Review) (as services.ServedType, ok bool, err error) {
	if as, ok = by.covers(r); !ok || m.exempt(r) {
		return as, false, nil
	}
	if ok, err = by.Selectors.Select(ctx, r, m.Labels); !ok || err != nil {
		return as, false, err
	}
	ok, err = m.meets(ctx, by, r, as)
	return as, ok, err
}

// Covers reports whether one of the rules matches requests of the operation, type,
// subresource and scope of a review.
func (m Matcher) Covers(by *Rules, r *review.Review) bool {
	_, ok := by.covers(r)
	return ok && !m.exempt(r)
}

// Converts reports whether the objects of a request may have to be converted for whom the
// rules are.
func (m Matcher) Converts(by *Rules, r *review.Review) bool {
	as, ok := by.covers(r)
	return ok && r.Converts(as) && !m.exempt(r)
}

// meets reports whether a request meets the conditions. If that cannot be decided and the
// rules do not fail open, the error is Forbidden (403).
func (m Matcher) meets(ctx context.Context, by *Rules, r *review.Review, as services.ServedType) (bool, error) {
	if len(by.Conditions) == 0 {
		return true, nil
	}
	request, err := r.Expressions(ctx, m.Expressions, as)
	if err != nil {
		return false, NotConverted(ctx, by.Who, err)
	}
	meets, err := m.Expressions.Match(ctx, by.Conditions, request)
	switch {
	case err != nil && deadline.Ended(ctx) != nil:
		return false, deadline.Ended(ctx)
	case err != nil && by.FailOpen:
		m.Log.WarnContext(ctx, "match conditions failed, the call is skipped", "of", by.Who, "error", err)
		return false, nil
	case err != nil:
		return false, r.Forbid("%v", err)
	}
	return meets, nil
}

// NotConverted returns the error of objects that cannot be converted for somebody, whatever
// the failure policy is.
func NotConverted(ctx context.Context, who string, err error) error {
	switch {
	case errors.Is(err, services.ErrNoConverter):
		return err
	case deadline.Ended(ctx) != nil:
		return deadline.Ended(ctx)
	}
	return &services.Status{Code: http.StatusInternalServerError, Reason: services.ReasonInternalError,
		Message: fmt.Sprintf("Internal error occurred: converting for %s: %v", who, err)}
}

// exempt reports whether the object of the review configures webhooks or admission
// services.
func (m Matcher) exempt(r *review.Review) bool {
	return r.Group == m.Vocabulary.Group("admissionregistration.") && strings.HasSuffix(r.Resource, "webhookconfigurations") ||
		r.Group == admissionservice.Group && r.Resource == admissionservice.Resource
}

// covers returns the type of the request if a rule names it. With matchPolicy Equivalent it is
// otherwise the first type that a rule names and that serves the same objects.
func (by *Rules) covers(r *review.Review) (as services.ServedType, ok bool) {
	own := r.Own()
	for i := range by.Rules {
		if Covers(&by.Rules[i], own, r) {
			return own, true
		}
	}
	if !by.Equivalent {
		return own, false
	}
	for i := range by.Rules {
		for _, served := range r.Served {
			if Covers(&by.Rules[i], served, r) {
				return served, true
			}
		}
		// A front door of an earlier release names no types: any version of the group will do.
		if other := by.Rules[i]; len(r.Served) == 0 {
			other.APIVersions = []string{"*"}
			if Covers(&other, own, r) {
				return own, true
			}
		}
	}
	return own, false
}
