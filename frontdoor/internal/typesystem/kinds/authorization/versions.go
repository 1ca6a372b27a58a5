package authorization

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// reviewFromV1beta1 converts a review in which the user's groups have a name in the
// singular.
func reviewFromV1beta1(_ vocabulary.Vocabulary, review map[string]any) {
	edit.Member(review, "spec", func(spec map[string]any) { edit.Rename(spec, "group", "groups") })
}

func reviewToV1beta1(_ vocabulary.Vocabulary, review map[string]any) {
	edit.Member(review, "spec", func(spec map[string]any) { edit.Rename(spec, "groups", "group") })
}
