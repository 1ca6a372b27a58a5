package versions

import "github.com/portico-platform/portico/services/vocabulary"

// oldReview is a review of what a user may do: the user's groups had a name in the
// singular.
var oldReview = &shape{
	toBest: func(_ vocabulary.Vocabulary, review map[string]any) {
		changed(review, "spec", func(spec map[string]any) { rename(spec, "group", "groups") })
	},
	fromBest: func(_ vocabulary.Vocabulary, review map[string]any) {
		changed(review, "spec", func(spec map[string]any) { rename(spec, "groups", "group") })
	},
}

// signingRequestToBest says in each condition of a signing request what its absence
// means: a condition that is there is true.
func signingRequestToBest(_ vocabulary.Vocabulary, request map[string]any) {
	changed(request, "status", func(status map[string]any) {
		eachChanged(status, "conditions", func(condition map[string]any) {
			if s := condition["status"]; s == nil || s == "" {
				condition["status"] = "True"
			}
		})
	})
}
