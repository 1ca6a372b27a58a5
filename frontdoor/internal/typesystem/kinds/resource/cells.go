package resource

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

// showClaimState returns a summary of a claim's state.
func showClaimState(o *cell.Object) any {
	var states []string
	deleted := o.Metadata.Get("deletionTimestamp").Exists()
	if deleted {
		states = append(states, "deleted")
	}
	switch {
	case o.Status.Get("allocation").Exists():
		states = append(states, "allocated")
		if o.Status.Get("reservedFor").Len() > 0 {
			states = append(states, "reserved")
		}
	case !deleted:
		states = append(states, "pending")
	}
	return strings.Join(states, ",")
}
