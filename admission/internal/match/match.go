// Package match decides which requests webhooks, policies and admission services are called for, by their
// rules, selectors and conditions. It makes no calls. It serves "Admission plugins" of the specification.
package match

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/labelselector"
)

// Labels returns the labels of a namespace.
type Labels func(ctx context.Context, namespace string) (map[string]string, error)

// Selectors choose requests by the labels of their object and of its namespace.
type Selectors struct{ namespaces, objects labels.Selector }

// ParseSelectors parses label selectors; nil selects everything.
func ParseSelectors(namespaces, objects *metav1.LabelSelector) (s Selectors, err error) {
	if s.namespaces, err = selector(namespaces); err != nil {
		return s, err
	}
	s.objects, err = selector(objects)
	return s, err
}

func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return labelselector.Parse(s)
}

// Select reports whether both selectors match: that of objects the new or the old one.
func (s Selectors) Select(ctx context.Context, r *review.Review, find Labels) (bool, error) {
	if !s.objects.Empty() {
		current, err := r.Current()
		if err != nil || !selects(s.objects, current) && !selects(s.objects, r.OldObject) {
			return false, err
		}
	}
	if s.namespaces.Empty() {
		return true, nil
	}
	own, inNone, err := namespaceLabels(ctx, r, find)
	return err == nil && (inNone || s.namespaces.Matches(own)), err
}

// namespaceLabels returns the labels of the namespace of a request, or of the namespace
// that is its object. inNone is true for cluster-scoped objects, which every namespace
// selector matches.
func namespaceLabels(ctx context.Context, r *review.Review, find Labels) (own labels.Set, inNone bool, err error) {
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
		own, err = find(ctx, r.Namespace)
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

// Covers reports whether a rule matches a request as one for the type.
func Covers(rule *admissionregistrationv1.RuleWithOperations, t services.ServedType, r *review.Review) bool {
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
