// Package labelselector reads the label selectors of objects, within the bounds of package ledger, which has no types of
// Kubernetes because admission services are built with it. It serves "Limits" of the specification.
package labelselector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/services/ledger"
)

// Parse returns the selector of an object. A nil one selects nothing, an empty one everything. The error is a
// ledger.ExcessError for one that is too large.
func Parse(s *metav1.LabelSelector) (labels.Selector, error) {
	if s != nil {
		terms := len(s.MatchLabels)
		for i := range s.MatchExpressions {
			terms += 1 + len(s.MatchExpressions[i].Values)
		}
		if err := ledger.CheckTerms(terms); err != nil {
			return nil, err
		}
	}
	return metav1.LabelSelectorAsSelector(s)
}
