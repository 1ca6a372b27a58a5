package remote

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
)

// selects reports whether the service is asked about a request. The error means that no
// condition is false and one cannot be evaluated.
func (w *Webhook) selects(ctx context.Context, a services.Attributes) (bool, error) {
	if w.config.Conditions == nil {
		return true, nil
	}
	return w.config.Conditions.Eval(ctx, &authorizationv1.SubjectAccessReview{Spec: w.reviewed(a)})
}

// reviewed is a request as conditions see it, in version v1.
func (w *Webhook) reviewed(a services.Attributes) authorizationv1.SubjectAccessReviewSpec {
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
	s.ResourceAttributes.FieldSelector, s.ResourceAttributes.LabelSelector = w.selectors(a)
	return s
}

// selectors returns the requirements of the selectors of a request; nil if there are none, or
// they cannot be parsed, or the service is not sent any.
func (w *Webhook) selectors(a services.Attributes) (byField *authorizationv1.FieldSelectorAttributes, byLabel *authorizationv1.LabelSelectorAttributes) {
	if !w.config.Selectors {
		return nil, nil
	}
	if selector, err := ledger.ParseFields(a.FieldSelector); err == nil && !selector.Empty() {
		byField = &authorizationv1.FieldSelectorAttributes{}
		for _, r := range selector.Requirements() {
			one := metav1.FieldSelectorRequirement{Key: r.Field, Operator: metav1.FieldSelectorOpIn, Values: []string{r.Value}}
			if r.Operator == selection.NotEquals {
				one.Operator = metav1.FieldSelectorOpNotIn
			}
			byField.Requirements = append(byField.Requirements, one)
		}
	}
	if selector, err := ledger.ParseLabels(a.LabelSelector); err == nil {
		required, _ := selector.Requirements()
		for i := range required {
			if operator, ok := operators[required[i].Operator()]; ok {
				if byLabel == nil {
					byLabel = &authorizationv1.LabelSelectorAttributes{}
				}
				byLabel.Requirements = append(byLabel.Requirements, metav1.LabelSelectorRequirement{Key: required[i].Key(), Operator: operator, Values: required[i].Values().List()})
			}
		}
	}
	return byField, byLabel
}

// operators are those of label selectors that reviews have. A requirement with another one is
// left out: the service decides about more objects.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}
