package reviews

import (
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/resource"
)

// checkSelectors validates the selectors of an access review. An operator may be one of a
// later release: it is ignored.
func checkSelectors(c *field.Errors, at *field.Path, res *authorizationv1.ResourceAttributes) {
	if s, at := res.FieldSelector, at.Field("fieldSelector"); s != nil && fits(c, at, s.RawSelector, countTerms(s.Requirements, func(r metav1.FieldSelectorRequirement) []string { return r.Values })) {
		checkSelector(c, at, s.RawSelector, len(s.Requirements))
		for i, r := range s.Requirements {
			at := at.Field("requirements").Item(i)
			if r.Key == "" {
				c.Required(at.Field("key"), "must be specified")
			}
			checkValues(c, at, string(r.Operator), r.Values)
		}
	}
	if s, at := res.LabelSelector, at.Field("labelSelector"); s != nil && fits(c, at, s.RawSelector, countTerms(s.Requirements, func(r metav1.LabelSelectorRequirement) []string { return r.Values })) {
		checkSelector(c, at, s.RawSelector, len(s.Requirements))
		for i, r := range s.Requirements {
			at := at.Field("requirements").Item(i)
			checkValues(c, at, string(r.Operator), r.Values)
			for _, problem := range validation.IsQualifiedName(r.Key) {
				c.Invalid(at.Field("key"), r.Key, problem)
			}
			for n, value := range r.Values {
				for _, problem := range validation.IsValidLabelValue(value) {
					c.Invalid(at.Field("values").Item(n), value, problem)
				}
			}
		}
	}
}

// fits reports whether a selector is small enough to be parsed.
func fits(c *field.Errors, at *field.Path, raw string, terms int) bool {
	if ledger.CheckSelector(raw) != nil {
		c.TooLong(at.Field("rawSelector"), int(ledger.Selector.Bytes))
		return false
	}
	if terms > ledger.Selector.Values {
		c.TooMany(at.Field("requirements"), terms, ledger.Selector.Values)
		return false
	}
	return true
}

// countTerms returns how many requirements and values a selector has.
func countTerms[R any](requirements []R, values func(R) []string) (n int) {
	for _, r := range requirements {
		n += 1 + len(values(r))
	}
	return n
}

// checkSelector checks that a selector has one of its two forms.
func checkSelector(c *field.Errors, at *field.Path, raw string, requirements int) {
	switch {
	case raw != "" && requirements > 0:
		c.Invalid(at.Field("rawSelector"), raw, "may not specified at the same time as requirements")
	case raw == "" && requirements == 0:
		c.Required(at.Field("requirements"), "when "+at.String()+" is specified, requirements or rawSelector is required")
	}
}

// checkValues checks that a requirement has values if its operator takes some.
func checkValues(c *field.Errors, at *field.Path, operator string, values []string) {
	switch operator {
	case string(metav1.LabelSelectorOpIn), string(metav1.LabelSelectorOpNotIn):
		if len(values) == 0 {
			c.Required(at.Field("values"), "must be specified when `operator` is 'In' or 'NotIn'")
		}
	case string(metav1.LabelSelectorOpExists), string(metav1.LabelSelectorOpDoesNotExist):
		if len(values) > 0 {
			c.Forbidden(at.Field("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
		}
	}
}

// selectors returns the selectors of a valid review in the syntax of the API, and which of
// them are ignored.
func selectors(res *authorizationv1.ResourceAttributes) (byField, byLabel, ignored string) {
	var all []string
	note := func(name string, kept, dropped int) {
		switch at := "spec.resourceAttributes." + name; {
		case dropped > 0 && kept > 0:
			all = append(all, at+" partially ignored due to parse error")
		case dropped > 0:
			all = append(all, at+" ignored due to parse error")
		}
	}
	if s := res.FieldSelector; s != nil {
		required, dropped := requiredFields(s)
		note("fieldSelector", len(required), dropped)
		byField = resource.FieldSelectorOf(required)
	}
	if s := res.LabelSelector; s != nil {
		required, dropped := requiredLabels(s)
		note("labelSelector", len(required), dropped)
		byLabel = resource.LabelSelectorOf(required)
	}
	return byField, byLabel, strings.Join(all, "; ")
}

// requiredFields returns the requirements of a selector, and the number of those that no
// field selector can express.
func requiredFields(s *authorizationv1.FieldSelectorAttributes) (required fields.Requirements, dropped int) {
	if s.RawSelector != "" {
		parsed, err := ledger.ParseFields(s.RawSelector)
		if err != nil {
			return nil, 1
		}
		return parsed.Requirements(), 0
	}
	for _, r := range s.Requirements {
		operator, ok := map[metav1.FieldSelectorOperator]selection.Operator{metav1.FieldSelectorOpIn: selection.Equals, metav1.FieldSelectorOpNotIn: selection.NotEquals}[r.Operator]
		if !ok || len(r.Values) != 1 {
			dropped++
			continue
		}
		required = append(required, fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]})
	}
	return required, dropped
}

// requiredLabels is requiredFields for labels.
func requiredLabels(s *authorizationv1.LabelSelectorAttributes) (required labels.Requirements, dropped int) {
	if s.RawSelector != "" {
		parsed, err := ledger.ParseLabels(s.RawSelector)
		if err != nil {
			return nil, 1
		}
		required, _ = parsed.Requirements()
		return required, 0
	}
	for _, r := range s.Requirements {
		operator, ok := map[metav1.LabelSelectorOperator]selection.Operator{metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
			metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist}[r.Operator]
		one, err := labels.NewRequirement(r.Key, operator, r.Values)
		if !ok || err != nil {
			dropped++
			continue
		}
		required = append(required, *one)
	}
	return required, dropped
}
