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
// of its selectors and all of its conditions have to match. as is the type of the matching
// rule, in whose version the webhook receives the objects.
func (w *Webhooks) matches(ctx context.Context, h *hook, r *review.Review) (as services.ServedType, ok bool, err error) {
	if as, ok = h.covers(r); !ok || w.exempt(r) {
		return as, false, nil
	}
	ok, err = w.selected(ctx, h, r)
	return as, ok, err
}

// selected reports whether both selectors and all conditions of a webhook match.
func (w *Webhooks) selected(ctx context.Context, h *hook, r *review.Review) (bool, error) {
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

// covers returns the type of the request if a rule names it. With matchPolicy Equivalent it is
// otherwise the first type that a rule names and that serves the same objects.
func (h *hook) covers(r *review.Review) (as services.ServedType, ok bool) {
	own := r.Own()
	for i := range h.rules {
		if covers(&h.rules[i], own, r) {
			return own, true
		}
	}
	if !h.equivalent {
		return own, false
	}
	for i := range h.rules {
		for _, served := range r.Served {
			if covers(&h.rules[i], served, r) {
				return served, true
			}
		}
		// A front door of an earlier release names no types: any version of the group will do.
		if other := h.rules[i]; len(r.Served) == 0 {
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
	namespaced := r.Namespace != "" && !isNamespace(r)
	return namespaced == (*scope == admissionregistrationv1.NamespacedScope)
}
