package updates

import (
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
)

// Releases that restart containers in more ways: sidecars, and rules of single containers.
var (
	sidecars, _     = release.Of("1.29")
	restartRules, _ = release.Of("1.35")
)

// transitions checks that containers that ended and must not be restarted do not run again.
func transitions(c *rules.Check, old, after map[string]any, at *field.Path) {
	spec, before := rules.Object(old, "spec"), rules.Object(old, "status")
	all := !c.Release.Before(restartRules) && restartsAll(spec)
	for _, lists := range [...]struct{ statuses, containers string }{
		{"containerStatuses", "containers"}, {"initContainerStatuses", "initContainers"}, {"ephemeralContainerStatuses", ""},
	} {
		if all && lists.containers != "" {
			continue // each of them may be restarted
		}
		running := runningIn(after, lists.statuses)
		containers := named(rules.Objects(spec, lists.containers))
		for i, was := range rules.Objects(before, lists.statuses) {
			ended, name := rules.Object(was, "state", "terminated"), rules.Text(was, "name")
			if ended != nil && running[name] && !(end{lists.containers, containers[name], rules.Number(ended, "exitCode")}).restarts(c, spec) {
				c.Forbidden(at.Field(lists.statuses).Item(i).Field("state"), "may not be transitioned to non-terminated state")
			}
		}
	}
}

// named returns the containers by their names: the first of each.
func named(list []map[string]any) map[string]map[string]any {
	containers := make(map[string]map[string]any, len(list))
	for _, container := range slices.Backward(list) {
		containers[rules.Text(container, "name")] = container
	}
	return containers
}

// end is the end of a container, nil for one that is not in the pod. list is empty for ephemeral containers, which are
// never restarted.
type end struct {
	list      string
	container map[string]any
	code      int64
}

// restarts reports whether the container is restarted.
func (e end) restarts(c *rules.Check, spec map[string]any) bool {
	if e.list == "" {
		return false
	}
	policy, rule := spec["restartPolicy"], !c.Release.Before(restartRules)
	container := e.container
	if container == nil && rule {
		return false
	}
	own := container["restartPolicy"]
	switch sidecar := e.list == "initContainers" && own == "Always" && !c.Release.Before(sidecars); {
	case rule && own != nil && ruleOf(container, e.code):
		return true
	case rule && own != nil, sidecar:
		policy = own
	}
	return policy == "Always" || policy == "OnFailure" && e.code != 0
}

const restartAll = "RestartAllContainers"

// restartsAll reports whether a rule of a container restarts all containers of the pod.
func restartsAll(spec map[string]any) bool {
	for _, list := range containerLists {
		for _, container := range rules.Objects(spec, list) {
			for _, rule := range rules.Objects(container, "restartPolicyRules") {
				if rule["action"] == restartAll {
					return true
				}
			}
		}
	}
	return false
}

// ruleOf reports whether the first rule of a container that an exit code matches restarts it.
func ruleOf(container map[string]any, code int64) bool {
	for _, rule := range rules.Objects(container, "restartPolicyRules") {
		codes := rules.Object(rule, "exitCodes")
		listed := slices.ContainsFunc(rules.List(codes, "values"), func(value any) bool { return value == code })
		if codes != nil && (codes["operator"] == "In" && listed || codes["operator"] == "NotIn" && !listed) {
			return rule["action"] == "Restart" || rule["action"] == restartAll
		}
	}
	return false
}

// runningIn returns the names in a list of container statuses that are not terminated.
func runningIn(status map[string]any, list string) map[string]bool {
	items := rules.Objects(status, list)
	running := make(map[string]bool, len(items))
	for _, item := range items {
		if rules.Object(item, "state", "terminated") == nil {
			running[rules.Text(item, "name")] = true
		}
	}
	return running
}
