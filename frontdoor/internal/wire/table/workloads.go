package table

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portico-platform/portico/frontdoor/internal/wire/rawjson"
)

func readyOfDesired(o *object) any {
	return fraction(o.status.Get("readyReplicas").Int(), o.spec.Get("replicas").Int())
}

// containers is what the statuses of a pod's containers add up to.
type containers struct {
	ready, total, restarts int64
	// blocked is how an unfinished init container shows; empty when there is none.
	blocked string
}

// podContainers returns the sum of a pod's containers, which several cells show.
func podContainers(o *object) containers {
	if o.pod == nil {
		sum := sumContainers(o)
		o.pod = &sum
	}
	return *o.pod
}

// sumContainers looks at a pod's containers. Init containers that restart always
// run beside the others and count with them.
func sumContainers(o *object) containers {
	var sidecars map[string]bool // by name
	inits := 0
	for c := range o.spec.Get("initContainers").Items() {
		inits++
		if c.Get("restartPolicy").Is("Always") {
			if sidecars == nil {
				sidecars = map[string]bool{}
			}
			sidecars[c.Get("name").String()] = true
		}
	}
	sum := containers{total: int64(o.spec.Get("containers").Len() + len(sidecars))}
	var initRestarts int64
	position := 0
	for c := range o.status.Get("initContainerStatuses").Items() {
		sidecar := sidecars[c.Get("name").String()]
		initRestarts += c.Get("restartCount").Int()
		if sidecar {
			sum.restarts += c.Get("restartCount").Int()
			if c.Get("ready").True() {
				sum.ready++
			}
		}
		if sum.blocked == "" {
			sum.blocked = initBlocked(c, sidecar, position, inits)
		}
		position++
	}
	for c := range o.status.Get("containerStatuses").Items() {
		sum.restarts += c.Get("restartCount").Int()
		if c.Get("ready").True() && c.Get("state", "running").Exists() {
			sum.ready++
		}
	}
	if sum.blocked != "" {
		sum.restarts = initRestarts
	}
	return sum
}

// initBlocked tells how an init container keeps its pod from starting.
func initBlocked(c rawjson.Value, sidecar bool, position, of int) string {
	terminated, waiting := c.Get("state", "terminated"), c.Get("state", "waiting", "reason").String()
	switch {
	case terminated.Exists() && terminated.Get("exitCode").Int() == 0:
		return ""
	case sidecar && c.Get("started").True():
		return ""
	case terminated.Exists():
		return "Init:" + exitReason(terminated)
	case waiting != "" && waiting != "PodInitializing":
		return "Init:" + waiting
	}
	return "Init:" + count(position) + "/" + count(of)
}

func exitReason(terminated rawjson.Value) string {
	if reason := terminated.Get("reason").String(); reason != "" {
		return reason
	}
	if signal := terminated.Get("signal").Int(); signal != 0 {
		return "Signal:" + count(int(signal))
	}
	return "ExitCode:" + count(int(terminated.Get("exitCode").Int()))
}

func podReady(o *object) any {
	c := podContainers(o)
	return fraction(c.ready, c.total)
}

func podRestarts(o *object) any { return podContainers(o).restarts }

func podStatus(o *object) any {
	phase, reason := o.status.Get("phase").String(), o.status.Get("reason").String()
	if o.metadata.Get("deletionTimestamp").Exists() {
		if reason == "NodeLost" {
			return "Unknown"
		}
		return "Terminating"
	}
	if blocked := podContainers(o).blocked; blocked != "" && !condition(o.status.Get("conditions"), "Initialized").Get("status").Is("True") {
		return blocked
	}
	shown := phase
	if reason != "" {
		shown = reason
	}
	if gated := condition(o.status.Get("conditions"), "PodScheduled"); gated.Get("reason").Is("SchedulingGated") {
		shown = "SchedulingGated"
	}
	return containersReason(o, shown)
}

// containersReason lets the first container that says why it does not run speak
// for the pod.
func containersReason(o *object, shown string) string {
	running := false
	for _, c := range slices.Backward(slices.Collect(o.status.Get("containerStatuses").Items())) {
		terminated := c.Get("state", "terminated")
		switch waiting := c.Get("state", "waiting", "reason").String(); {
		case waiting != "":
			shown = waiting
		case terminated.Exists():
			shown = exitReason(terminated)
		case c.Get("ready").True():
			running = true
		}
	}
	if shown == "Completed" && running {
		if condition(o.status.Get("conditions"), "Ready").Get("status").Is("True") {
			return "Running"
		}
		return "NotReady"
	}
	return shown
}

// podEnded tells of a pod that there is nothing more to wait for.
func podEnded(o *object) string {
	message := ""
	phase := o.status.Get("phase").String()
	switch phase {
	case "Succeeded":
		message = "The pod has completed successfully."
	case "Failed":
		message = "The pod failed."
	default:
		return ""
	}
	return `[{"type":"Completed","status":"True","reason":"` + phase + `","message":"` + message + `"}]`
}

func podReadinessGates(o *object) any {
	gates, open := int64(0), int64(0)
	for gate := range o.spec.Get("readinessGates").Items() {
		gates++
		if condition(o.status.Get("conditions"), gate.Get("conditionType").String()).Get("status").Is("True") {
			open++
		}
	}
	if gates == 0 {
		return none
	}
	return fraction(open, gates)
}

func jobCompletions(o *object) any {
	succeeded, wanted := o.status.Get("succeeded").Int(), o.spec.Get("completions")
	if wanted.Exists() {
		return fraction(succeeded, wanted.Int())
	}
	if parallel := o.spec.Get("parallelism").Int(); parallel > 1 {
		return fraction(succeeded, 1) + " of " + count(int(parallel))
	}
	return fraction(succeeded, 1)
}

func jobDuration(o *object) any {
	start, ok := timestamp(o.status.Get("startTime"))
	if !ok {
		return ""
	}
	end, ok := jobEnd(o)
	if !ok {
		return start
	}
	return duration.HumanDuration(end.Sub(start))
}

func jobEnd(o *object) (time.Time, bool) {
	if end, ok := timestamp(o.status.Get("completionTime")); ok {
		return end, true
	}
	if failed := condition(o.status.Get("conditions"), "Failed"); failed.Get("status").Is("True") {
		return timestamp(failed.Get("lastTransitionTime"))
	}
	return time.Time{}, false
}

func nodeStatus(o *object) any {
	text := "Unknown"
	if ready := condition(o.status.Get("conditions"), "Ready").Get("status"); ready.Is("True") {
		text = "Ready"
	} else if ready.Exists() {
		text = "NotReady"
	}
	if o.spec.Get("unschedulable").True() {
		text += ",SchedulingDisabled"
	}
	return text
}

// nodeRoles reads both spellings of role labels: <role prefix>/<role> and
// <domain>/role: <role>.
func nodeRoles(o *object) any {
	prefix, single := o.names.Qualified("node-role", ""), o.names.Qualified("", "role")
	var roles []string
	for label, value := range o.metadata.Get("labels").Members() {
		if role, ok := cutNonEmpty(label, prefix); ok {
			roles = append(roles, role)
		} else if label == single && value.String() != "" {
			roles = append(roles, value.String())
		}
	}
	slices.Sort(roles)
	return orNone(slices.Compact(roles))
}

func nodeAddress(kind string) func(*object) any {
	return func(o *object) any {
		for a := range o.status.Get("addresses").Items() {
			if a.Get("type").Is(kind) {
				return a.Get("address").String()
			}
		}
		return none
	}
}
