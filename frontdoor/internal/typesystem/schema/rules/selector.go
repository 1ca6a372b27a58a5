package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-platform/portico/services/labelselector"
)

// IsEmptySelector reports whether a label selector, or the plain map of an older kind,
// selects everything.
func IsEmptySelector(selector map[string]any) bool {
	if !structured(selector) {
		return len(selector) == 0
	}
	return len(Object(selector, "matchLabels")) == 0 && len(List(selector, "matchExpressions")) == 0
}

func structured(selector map[string]any) bool {
	_, labels := selector["matchLabels"]
	_, expressions := selector["matchExpressions"]
	return labels || expressions
}

// IsSelector reports whether a label selector can be parsed. Errors that prevent it are
// reported elsewhere. A plain map is a selector.
func IsSelector(selector map[string]any) bool {
	if !structured(selector) {
		return true
	}
	_, err := parse(selector)
	return err == nil
}

// Selects reports whether a label selector, or the plain map of an older kind, matches
// labels. An invalid selector matches everything, because it is reported elsewhere.
func Selects(selector, set map[string]any) bool {
	plain := selector
	if structured(selector) {
		plain = Object(selector, "matchLabels")
	}
	for key, value := range plain {
		if set[key] != value {
			return false
		}
	}
	if !structured(selector) || len(List(selector, "matchExpressions")) == 0 {
		return true
	}
	parsed, err := parse(selector)
	return err != nil || parsed.Matches(labelSet(set))
}

func parse(selector map[string]any) (labels.Selector, error) {
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed); err != nil {
		return nil, err
	}
	return labelselector.Parse(&typed)
}

func labelSet(m map[string]any) labels.Set {
	set := make(labels.Set, len(m))
	for key, value := range m {
		set[key], _ = value.(string)
	}
	return set
}
