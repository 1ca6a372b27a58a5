package resource

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// FieldSelectorOf returns a field selector with these requirements, in the syntax of the API.
func FieldSelectorOf(requirements fields.Requirements) string {
	all := make([]fields.Selector, len(requirements))
	for i, r := range requirements {
		all[i] = fields.OneTermEqualSelector(r.Field, r.Value)
		if r.Operator == selection.NotEquals {
			all[i] = fields.OneTermNotEqualSelector(r.Field, r.Value)
		}
	}
	return fields.AndSelectors(all...).String()
}

// LabelSelectorOf returns a label selector with these requirements, in the syntax of the API.
func LabelSelectorOf(requirements labels.Requirements) string {
	return labels.NewSelector().Add(requirements...).String()
}
