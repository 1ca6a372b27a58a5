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
// request.
func (m Matcher) Matches(ctx context.Context, by *Rules, r *review.Review) (bool, error) {
	if m.exempt(r) || !slices.ContainsFunc(by.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return m.covers(by, &rule, r) }) {
		return false, nil
	}
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

// covers reports whether a rule matches the request.
func (m Matcher) covers(by *Rules, rule *admissionregistrationv1.RuleWithOperations, r *review.Review) bool {
	if !includes(rule.Operations, admissionregistrationv1.OperationType(r.Operation)) || !inScope(rule.Scope, r) {
		return false
	}
	if !slices.ContainsFunc(rule.Resources, func(path string) bool { return coversPath(path, r) }) {
		return false
	}
	if includes(rule.APIGroups, r.Group) && includes(rule.APIVersions, r.Version) {
		return true
	}
	return by.Equivalent && slices.ContainsFunc(m.Groups(r), func(group string) bool { return includes(rule.APIGroups, group) })
}

// Groups returns the API groups that serve the objects of the request's resource.
func (m Matcher) Groups(r *review.Review) []string {
	for _, shown := range []struct {
		resource string
		in       []string
	}{
		{"ingresses", []string{m.Vocabulary.Group("networking."), "extensions"}},
		{"events", []string{"", m.Vocabulary.Group("events.")}},
	} {
		if r.Resource == shown.resource && slices.Contains(shown.in, r.Group) {
			return shown.in
		}
	}
	return []string{r.Group}
}

func includes[T ~string](list []T, value T) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// coversPath reports whether a rule's resource, as in pods, pods/exec, pods/*, */scale or
// */*, is that of the request. A * alone means no subresources.
func coversPath(path string, r *review.Review) bool {
	resource, subresource, _ := strings.Cut(path, "/")
	return (resource == "*" || resource == r.Resource) && (subresource == "*" || subresource == r.Subresource)
}

func inScope(scope *admissionregistrationv1.ScopeType, r *review.Review) bool {
	if scope == nil || *scope == admissionregistrationv1.AllScopes {
		return true
	}
	namespaced := r.Namespace != "" && !r.IsNamespace()
	return namespaced == (*scope == admissionregistrationv1.NamespacedScope)
}
