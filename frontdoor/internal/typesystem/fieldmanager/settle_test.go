package fieldmanager

import (
	"testing"

	"github.com/portico-platform/portico/services/tree"
)

// TestSettle: different times are not a change.
func TestSettle(t *testing.T) {
	live := decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t1}]}, data: {k: v}}")
	next := decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t2}]}, data: {k: v}}")
	Settle(live, next)
	if !tree.Equal(live, next) {
		t.Error("the times differ still")
	}
	next = decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t2}]}, data: {k: w}}")
	Settle(live, next)
	if tree.Equal(ownersOf(live), ownersOf(next)) {
		t.Error("a change lost its time")
	}
}
