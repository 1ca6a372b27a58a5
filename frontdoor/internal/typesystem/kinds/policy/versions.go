package policy

import (
	"reflect"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// An empty selector selects no pods in an old disruption budget, and all of them in
// a newer one. Each of the two is said in the other version by a label that no pod
// has: a selector that wants it selects none, one that wants it absent selects all.

func budgetFromV1beta1(v vocabulary.Vocabulary, budget map[string]any) {
	exchange(budget, noPods(v), allPods(v))
}

func budgetToV1beta1(v vocabulary.Vocabulary, budget map[string]any) {
	exchange(budget, allPods(v), noPods(v))
}

func noPods(v vocabulary.Vocabulary) map[string]any  { return onlyLabel(v, "Exists") }
func allPods(v vocabulary.Vocabulary) map[string]any { return onlyLabel(v, "DoesNotExist") }

// onlyLabel returns the selector on the label that no pod has.
func onlyLabel(v vocabulary.Vocabulary, operator string) map[string]any {
	return map[string]any{"matchExpressions": []any{
		map[string]any{"key": v.Qualified("pdb", "deprecated-v1beta1-empty-selector-match"), "operator": operator},
	}}
}

// exchange writes an empty selector out as what it means, and what it means in the
// other version as an empty one.
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
