package flowcontrol

import (
	"cmp"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showFlowSchemaMissing(o *cell.Object) any {
	return cmp.Or(cell.Condition(o.Status.Get("conditions"), "Dangling").Get("status").String(), "?")
}
