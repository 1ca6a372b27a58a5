package certificates

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// signingRequestFromV1beta1 sets the status of each condition that has none: in v1beta1
// a condition that is present is true.
func signingRequestFromV1beta1(_ vocabulary.Vocabulary, request map[string]any) {
	edit.Member(request, "status", func(status map[string]any) {
		edit.Items(status, "conditions", func(condition map[string]any) {
			if s := condition["status"]; s == nil || s == "" {
				condition["status"] = "True"
			}
		})
	})
}
