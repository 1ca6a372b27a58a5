package strategy

import (
	"slices"

	"github.com/portico-platform/portico/services/tree"
)

// DedupOwners drops the references to an owner that stand in metadata.ownerReferences
// already, each like the first, and returns the uids of these owners.
func DedupOwners(obj map[string]any) (repeated []string) {
	references, _ := Metadata(obj)["ownerReferences"].([]any)
	if len(references) < 2 {
		return nil
	}
	var kept []any
	for _, item := range references {
		if !slices.ContainsFunc(kept, func(k any) bool { return tree.Equal(k, item) }) {
			kept = append(kept, item)
		} else if uid := text(element(item)["uid"]); !slices.Contains(repeated, uid) {
			repeated = append(repeated, uid)
		}
	}
	if repeated != nil {
		Metadata(obj)["ownerReferences"] = kept
	}
	return repeated
}
