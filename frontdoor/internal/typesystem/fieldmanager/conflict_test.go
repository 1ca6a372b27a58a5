package fieldmanager

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/merge"
)

// TestConflictsAreInTheOrderOfNames: whether a manager applies or updates does not count.
func TestConflictsAreInTheOrderOfNames(t *testing.T) {
	at := fieldpath.MakePathOrDie("data")
	got := conflictStatus(smd.Conflicts{
		{Manager: identity{operationApply, "b", "", ""}.key(), Path: at},
		{Manager: identity{operationUpdate, "a", "v1", ""}.key(), Path: at},
		{Manager: identity{operationApply, "a", "", ""}.key(), Path: at},
	}).Message
	const want = "Apply failed with 3 conflicts: conflicts with \"a\":\n- .data\nconflicts with \"a\" using v1:\n- .data\nconflicts with \"b\":\n- .data"
	if got != want {
		t.Errorf("got %s", got)
	}
}
