package labelselector

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/services/ledger"
)

func TestParse(t *testing.T) {
	small, err := Parse(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
	if err != nil || !small.Matches(labels.Set{"a": "b"}) || small.Matches(labels.Set{}) {
		t.Errorf("%v, %v", small, err)
	}
	for what, large := range map[string]*metav1.LabelSelector{
		"values":       {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: make([]string, 20_000)}}},
		"requirements": {MatchExpressions: make([]metav1.LabelSelectorRequirement, 20_000)},
	} {
		if _, err := Parse(large); !errors.As(err, new(*ledger.ExcessError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
