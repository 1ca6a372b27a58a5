package strategy

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// DedupOwnerReferences removes repeated, identical ownerReferences and returns the UIDs of
// their owners, each once.
func DedupOwnerReferences(obj map[string]any) (repeated []string) {
	references, _ := Metadata(obj)["ownerReferences"].([]any)
	if len(references) < 2 {
		return nil
	}
	var kept []any
	seen, reported := make(map[string]bool, len(references)), map[string]bool{}
	for _, item := range references {
		written, err := tree.Append(nil, item)
		if err != nil || !seen[string(written)] {
			seen[string(written)] = true
			kept = append(kept, item)
		} else if uid := rules.Text(rules.AsObject(item), "uid"); !reported[uid] {
			reported[uid] = true
			repeated = append(repeated, uid)
		}
	}
	if repeated != nil {
		Metadata(obj)["ownerReferences"] = kept
	}
	return repeated
}

// RepeatedOwners returns the warning about duplicate ownerReferences with these UIDs.
func RepeatedOwners(repeated []string, afterAdmission bool) string {
	after := ""
	if afterAdmission {
		after = " after mutating admission happens"
	}
	return ".metadata.ownerReferences contains duplicate entries" + after + "; API server dedups owner references in 1.20+, " +
		"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " + strings.Join(repeated, ", ")
}
