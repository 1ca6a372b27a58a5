// Package events holds the functions of Events, in the core group and in events/v1,
// which share objects. It serves "Resources and their fields" of the specification.
package events

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"anyEvent": anyEvent,
		"newEvent": newEvent,
	},
	Cells: map[string]cell.Func{
		"showEventCount":     showEventCount,
		"showEventFirstSeen": showEventFirstSeen,
		"showEventLastSeen":  showEventLastSeen,
		"showEventObject":    showEventObject,
		"showEventInstance":  showEventInstance,
		"showEventSource":    showEventSource,
	},
	Convert: map[string]kinds.ConvertFunc{
		"eventFromCore": eventFromCore,
		"eventToCore":   eventToCore,
	},
}
