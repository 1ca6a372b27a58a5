package policy

import (
	"reflect"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// In v1beta1 an empty selector of a PodDisruptionBudget selects no pods, in v1 all of them.
// Each version expresses the other's meaning with a label that no pod has: a requirement
// that it exists selects none, one that it does not exist selects all.

func budgetFromV1beta1(v vocabulary.Vocabulary, budget map[string]any) {
	exchange(budget, noPods(v), allPods(v))
}

func budgetToV1beta1(v vocabulary.Vocabulary, budget map[string]any) {
	exchange(budget, allPods(v), noPods(v))
}

func noPods(v vocabulary.Vocabulary) map[string]any  { return onlyLabel(v, "Exists") }
func allPods(v vocabulary.Vocabulary) map[string]any { return onlyLabel(v, "DoesNotExist") }

// onlyLabel returns a selector with one requirement on the label that no pod has.
func onlyLabel(v vocabulary.Vocabulary, operator string) map[string]any {
	return map[string]any{"matchExpressions": []any{
		map[string]any{"key": v.Qualified("pdb", "deprecated-v1beta1-empty-selector-match"), "operator": operator},
	}}
}

// exchange replaces an empty selector by its meaning, and a selector with the meaning of an
// empty one in the other version by that.
func exchange(budget map[string]any, emptyMeans, becomesEmpty map[string]any) {
	edit.Member(budget, "spec", func(spec map[string]any) {
		selector, ok := spec["selector"].(map[string]any)
		switch {
		case !ok:
		case len(tree.List(selector, "matchExpressions")) == 0 && len(tree.Child(selector, "matchLabels")) == 0:
			spec["selector"] = emptyMeans
		case len(tree.Child(selector, "matchLabels")) == 0 && reflect.DeepEqual(selector["matchExpressions"], becomesEmpty["matchExpressions"]):
			spec["selector"] = map[string]any{}
		}
	})
}
