package certificates

import (
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// setRequester sets the user fields of a request to the authenticated user, whatever the
// client sent.
func setRequester(w kinds.Write, obj, _ map[string]any) {
	spec := tree.Object(obj, "spec")
	for _, field := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, field)
	}
	spec["username"] = w.User.Name
	if w.User.UID != "" {
		spec["uid"] = w.User.UID
	}
	if len(w.User.Groups) > 0 {
		spec["groups"] = list(w.User.Groups)
	}
	if len(w.User.Extra) > 0 {
		extra := map[string]any{}
		for key, values := range w.User.Extra {
			extra[key] = list(values)
		}
		spec["extra"] = extra
	}
}

// updateSigningRequest keeps the spec and the parts of the status that the subresource does
// not change, and sets the times of new conditions.
func updateSigningRequest(w kinds.Write, obj, old map[string]any) {
	kinds.Keep(obj, old, "spec")
	status, oldStatus := tree.Object(obj, "status"), tree.Object(old, "status")
	switch w.Subresource {
	case "approval":
		kinds.Keep(status, oldStatus, "certificate")
		stampConditions(status, oldStatus, w.Now)
	case "status":
		keepDecisions(status, oldStatus)
		stampConditions(status, oldStatus, w.Now)
	}
}

// keepDecisions restores the conditions Approved and Denied: only the subresource approval
// may set them. If their number differs, they are left for validation to reject.
func keepDecisions(status, oldStatus map[string]any) {
	conditions, _ := status["conditions"].([]any)
	old, _ := oldStatus["conditions"].([]any)
	for _, kind := range [...]string{"Approved", "Denied"} {
		now, before := indices(conditions, kind), indices(old, kind)
		if len(now) != len(before) {
			continue
		}
		for i, at := range now {
			conditions[at] = old[before[i]]
		}
	}
}

// indices returns the indices of the conditions of a type.
func indices(conditions []any, kind string) []int {
	var at []int
	for i, c := range conditions {
		if rules.AsObject(c)["type"] == kind {
			at = append(at, i)
		}
	}
	return at
}

// stampConditions sets the missing times of conditions. A condition whose status has not
// changed keeps its lastTransitionTime.
func stampConditions(status, oldStatus map[string]any, now time.Time) {
	conditions, _ := status["conditions"].([]any)
	old, _ := oldStatus["conditions"].([]any)
	type state struct{ kind, status string }
	stateOf := func(condition map[string]any) state {
		return state{rules.Text(condition, "type"), rules.Text(condition, "status")}
	}
	since := make(map[state]any, len(old))
	for _, o := range old {
		if before := rules.AsObject(o); before["lastTransitionTime"] != nil {
			since[stateOf(before)] = before["lastTransitionTime"]
		}
	}
	for _, c := range conditions {
		condition := rules.AsObject(c)
		reached := any(now.UTC().Format(time.RFC3339))
		if condition["lastUpdateTime"] == nil {
			condition["lastUpdateTime"] = reached
		}
		if before, had := since[stateOf(condition)]; had {
			reached = before
		}
		if condition["lastTransitionTime"] == nil {
			condition["lastTransitionTime"] = reached
		}
	}
}

func list(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
