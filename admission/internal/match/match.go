// Package match decides which requests webhooks and admission services are asked about,
// by their rules and selectors. Nobody is asked about the configurations of either, so
// that a wrong one can be repaired. It serves "Admission plugins" of the specification.
package match

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Rules select requests.
type Rules struct {
	// Who is asked, for the log.
	Who   string
	Rules []admissionregistrationv1.RuleWithOperations
	// Namespaces and Objects select labels; they are not nil.
	Namespaces, Objects labels.Selector
	// Equivalent is matchPolicy Equivalent: the rules match all groups and versions that
	// serve the named resources.
	Equivalent bool
	// Conditions are expressions that must all be true. FailOpen means that a request for
	// which they cannot be evaluated does not match; otherwise it is refused.
	Conditions []cel.MatchCondition
	FailOpen   bool
}

// Selector parses a label selector; nil selects everything.
func Selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// Matcher matches requests with rules.
type Matcher struct {
	// Labels returns the labels of a namespace, for namespace selectors.
	Labels      func(ctx context.Context, namespace string) (map[string]string, error)
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
	ok, err = m.selected(ctx, by, r)
	return as, ok, err
}

// Converts reports whether the objects of a request may have to be converted for whom the
// rules are.
func (m Matcher) Converts(by *Rules, r *review.Review) bool {
	as, ok := by.covers(r)
	return ok && r.Converts(as) && !m.exempt(r)
}

// selected reports whether both selectors and all conditions match.
func (m Matcher) selected(ctx context.Context, by *Rules, r *review.Review) (bool, error) {
	if !by.Objects.Empty() {
		current, err := r.Current()
		if err != nil || !selects(by.Objects, current) && !selects(by.Objects, r.OldObject) {
			return false, err
		}
	}
	if !by.Namespaces.Empty() {
		own, inNone, err := m.namespaceLabels(ctx, r)
		if err != nil || !inNone && !by.Namespaces.Matches(own) {
			return false, err
		}
	}
	return m.meets(ctx, by, r)
}

// meets reports whether a request meets the conditions. If that cannot be decided and the
// rules do not fail open, the error is Forbidden (403).
func (m Matcher) meets(ctx context.Context, by *Rules, r *review.Review) (bool, error) {
	if len(by.Conditions) == 0 {
		return true, nil
	}
	request, err := r.Expressions(m.Expressions)
	if err != nil {
		return false, err
	}
	meets, err := m.Expressions.Match(ctx, by.Conditions, request)
	switch {
	case ctx.Err() != nil:
		return false, services.AsStatus(ctx.Err())
	case err != nil && by.FailOpen:
		m.Log.WarnContext(ctx, "match conditions failed and nobody is asked", "of", by.Who, "error", err)
		return false, nil
	case err != nil:
		return false, r.Forbid("%v", err)
	}
	return meets, nil
}

// exempt reports whether the object of the review configures webhooks or admission
// services.
func (m Matcher) exempt(r *review.Review) bool {
	return r.Group == m.Vocabulary.Group("admissionregistration.") && strings.HasSuffix(r.Resource, "webhookconfigurations") ||
		r.Group == admissionservice.Group && r.Resource == admissionservice.Resource
}

// namespaceLabels returns the labels of the namespace of a request, or of the namespace
// that is its object. inNone is true for cluster-scoped objects, which every namespace
// selector matches.
func (m Matcher) namespaceLabels(ctx context.Context, r *review.Review) (own labels.Set, inNone bool, err error) {
	switch {
	case r.IsNamespace() && r.Subresource == "" && r.Operation != services.OperationDelete:
		var current []byte
		current, err = r.Current()
		own, _ = labelsOf(current)
	case r.IsNamespace():
		own, _ = labelsOf(r.OldObject)
	case r.Namespace == "":
		inNone = true
	default:
		own, err = m.Labels(ctx, r.Namespace)
	}
	return own, inNone, err
}

func selects(s labels.Selector, object []byte) bool {
	own, ok := labelsOf(object)
	return ok && s.Matches(labels.Set(own))
}

// labelsOf returns the labels of an object, false if it has no metadata.
func labelsOf(object []byte) (map[string]string, bool) {
	var o struct {
		Metadata *struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if object == nil || json.Unmarshal(object, &o) != nil || o.Metadata == nil {
		return nil, false
	}
	return o.Metadata.Labels, true
}

// covers returns the type of the request if a rule names it. With matchPolicy Equivalent it is
// otherwise the first type that a rule names and that serves the same objects.
func (by *Rules) covers(r *review.Review) (as services.ServedType, ok bool) {
	own := r.Own()
	for i := range by.Rules {
		if covers(&by.Rules[i], own, r) {
			return own, true
		}
	}
	if !by.Equivalent {
		return own, false
	}
	for i := range by.Rules {
		for _, served := range r.Served {
			if covers(&by.Rules[i], served, r) {
				return served, true
			}
		}
		// A front door of an earlier release names no types: any version of the group will do.
		if other := by.Rules[i]; len(r.Served) == 0 {
			other.APIVersions = []string{"*"}
			if covers(&other, own, r) {
				return own, true
			}
		}
	}
	return own, false
}

// covers reports whether a rule matches a request as one for the type.
func covers(rule *admissionregistrationv1.RuleWithOperations, t services.ServedType, r *review.Review) bool {
	return includes(rule.Operations, admissionregistrationv1.OperationType(r.Operation)) && inScope(rule.Scope, r) &&
		includes(rule.APIGroups, t.Group) && includes(rule.APIVersions, t.Version) &&
		slices.ContainsFunc(rule.Resources, func(path string) bool { return coversPath(path, t.Resource, r.Subresource) })
}

func includes[T ~string](list []T, value T) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// coversPath reports whether a path in a rule, as in pods, pods/exec, pods/*, */scale or */*,
// is that of a resource or subresource. A * alone means no subresources.
func coversPath(path, plural, sub string) bool {
	resource, subresource, _ := strings.Cut(path, "/")
	return (resource == "*" || resource == plural) && (subresource == "*" || subresource == sub)
}

func inScope(scope *admissionregistrationv1.ScopeType, r *review.Review) bool {
	if scope == nil || *scope == admissionregistrationv1.AllScopes {
		return true
	}
	namespaced := r.Namespace != "" && !r.IsNamespace()
	return namespaced == (*scope == admissionregistrationv1.NamespacedScope)
}
