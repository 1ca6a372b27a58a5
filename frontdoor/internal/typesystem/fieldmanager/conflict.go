package fieldmanager

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/merge"

	"github.com/portico-platform/portico/services"
)

// maxConflicts limits the conflicts that one response lists.
const maxConflicts = 100

// conflictStatus returns the 409 of an apply, with one cause per manager and field (rule
// 2), up to maxConflicts.
func conflictStatus(conflicts smd.Conflicts) *services.Status {
	// The fields of a manager stay in the order of its set: each object's own ones come first.
	slices.SortStableFunc(conflicts, func(a, b smd.Conflict) int {
		one, other := identityOf(a.Manager), identityOf(b.Manager)
		return cmp.Or(strings.Compare(one.name, other.name), strings.Compare(a.Manager, b.Manager))
	})
	var causes []services.StatusCause
	var lines []string
	listed := conflicts[:min(len(conflicts), maxConflicts)]
	for i, c := range listed {
		who := describe(identityOf(c.Manager))
		causes = append(causes, services.StatusCause{Reason: services.CauseFieldManagerConflict, Message: "conflict with " + who, Field: c.Path.String()})
		if i == 0 || c.Manager != conflicts[i-1].Manager {
			lines = append(lines, "conflicts with "+who+":")
		}
		lines = append(lines, "- "+c.Path.String())
	}
	if more := len(conflicts) - len(listed); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	message := fmt.Sprintf("Apply failed with %d conflicts: %s", len(conflicts), strings.Join(lines, "\n"))
	if len(conflicts) == 1 {
		message = fmt.Sprintf("Apply failed with 1 conflict: %s: %s", causes[0].Message, causes[0].Field)
	}
	return &services.Status{Code: http.StatusConflict, Reason: services.ReasonConflict, Message: message,
		Details: &services.StatusDetails{Causes: causes}}
}

// describe returns a manager in the form of messages.
func describe(id identity) string {
	who := fmt.Sprintf("%q", id.name)
	if id.subresource != "" {
		who += fmt.Sprintf(" with subresource %q", id.subresource)
	}
	if id.operation == operationUpdate {
		who += " using " + id.apiVersion
	}
	return who
}
