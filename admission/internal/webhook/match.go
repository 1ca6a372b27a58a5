package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// matches reports whether a webhook is to be called for a request: one of its rules, both
// of its selectors and all of its conditions have to match.
func (w *Webhooks) matches(ctx context.Context, h *hook, r *review.Review) (bool, error) {
	if w.exempt(r) || !slices.ContainsFunc(h.rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return w.covers(h, &rule, r) }) {
		return false, nil
	}
	if !h.objects.Empty() {
		current, err := r.Current()
		if err != nil || !selects(h.objects, current) && !selects(h.objects, r.OldObject) {
			return false, err
		}
	}
	if !h.namespaces.Empty() {
		own, inNone, err := w.namespaceLabels(ctx, r)
		if err != nil || !inNone && !h.namespaces.Matches(own) {
			return false, err
		}
	}
	return w.meets(ctx, h, r)
}

// meets reports whether a request meets the conditions of a webhook. If that cannot be
// decided, the failure policy Ignore skips the webhook, and the policy Fail refuses the
// request with Forbidden (403).
func (w *Webhooks) meets(ctx context.Context, h *hook, r *review.Review) (bool, error) {
	if len(h.conditions) == 0 {
		return true, nil
	}
	request, err := r.Expressions(w.Expressions)
	if err != nil {
		return false, err
	}
	meets, err := w.Expressions.Match(ctx, h.conditions, request)
	switch {
	case ctx.Err() != nil:
		return false, services.AsStatus(ctx.Err())
	case err != nil && h.failOpen:
		w.Log.WarnContext(ctx, "the match conditions of a webhook failed and it is skipped", "webhook", h.name, "configuration", h.configuration, "error", err)
		return false, nil
	case err != nil:
		return false, r.Forbid("%v", err)
	}
	return meets, nil
}

// namespaceLabels returns the labels of the namespace of a request, or of the namespace
// that is its object. inNone is true for cluster-scoped objects, which every namespace
// selector matches.
func (w *Webhooks) namespaceLabels(ctx context.Context, r *review.Review) (own labels.Set, inNone bool, err error) {
	switch {
	case isNamespace(r) && r.Subresource == "" && r.Operation != services.OperationDelete:
		var current []byte
		current, err = r.Current()
		own, _ = labelsOf(current)
	case isNamespace(r):
		own, _ = labelsOf(r.OldObject)
	case r.Namespace == "":
		inNone = true
	default:
		own, err = w.Labels(ctx, r.Namespace)
	}
	return own, inNone, err
}

func isNamespace(r *review.Review) bool { return r.Group == "" && r.Resource == "namespaces" }

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
func (w *Webhooks) covers(h *hook, rule *admissionregistrationv1.RuleWithOperations, r *review.Review) bool {
	if !includes(rule.Operations, admissionregistrationv1.OperationType(r.Operation)) || !inScope(rule.Scope, r) {
		return false
	}
	if !slices.ContainsFunc(rule.Resources, func(path string) bool { return coversPath(path, r) }) {
		return false
	}
	if includes(rule.APIGroups, r.Group) && includes(rule.APIVersions, r.Version) {
		return true
	}
	return h.equivalent && slices.ContainsFunc(w.groups(r), func(group string) bool { return includes(rule.APIGroups, group) })
}

// groups returns the API groups that serve the objects of the request's resource.
func (w *Webhooks) groups(r *review.Review) []string {
	for _, shown := range []struct {
		resource string
		in       []string
	}{
		{"ingresses", []string{w.Vocabulary.Group("networking."), "extensions"}},
		{"events", []string{"", w.Vocabulary.Group("events.")}},
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
	namespaced := r.Namespace != "" && !isNamespace(r)
	return namespaced == (*scope == admissionregistrationv1.NamespacedScope)
}
