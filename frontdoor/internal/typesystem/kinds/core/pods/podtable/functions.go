// Package podtable holds the cells of Tables of pods. It serves "Table representation" of the
// specification.
package podtable

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// Functions are the functions that the file of pods refers to.
var Functions = kinds.Functions{
	Cells: map[string]cell.Func{
		"showLastRestart":       showLastRestart,
		"showPodReadinessGates": showPodReadinessGates,
		"showPodReady":          showPodReady,
		"showPodRestarts":       showPodRestarts,
		"showPodStatus":         showPodStatus,
	},
	Rows: map[string]cell.RowFunc{"podEnded": podEnded},
}
