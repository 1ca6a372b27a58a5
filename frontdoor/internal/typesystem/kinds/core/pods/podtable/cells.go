package podtable

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// containers is the summary of the statuses of a pod's containers.
type containers struct {
	ready, total, restarts int64
	last                   time.Time // the last restart; zero if it is not known
	// blocked is the status of an init container that has not completed; "" for none.
	blocked string
}

// containersOf returns the summary of a pod's containers, cached for the row's other cells.
func containersOf(o *cell.Object) containers {
	sum, ok := o.Memo.(*containers)
	if !ok {
		made := sumContainers(o)
		sum, o.Memo = &made, &made
	}
	return *sum
}

// sumContainers computes the summary. Init containers with restartPolicy Always are
// sidecars: they run beside the containers and are counted with them.
func sumContainers(o *cell.Object) containers {
	var sidecars map[string]bool // by name
	inits := 0
	for c := range o.Spec.Get("initContainers").Items() {
		inits++
		if c.Get("restartPolicy").Is("Always") {
			if sidecars == nil {
				sidecars = map[string]bool{}
			}
			sidecars[c.Get("name").String()] = true
		}
	}
	sum := containers{total: int64(o.Spec.Get("containers").Len() + len(sidecars))}
	var initRestarts int64
	var initLast time.Time
	position := 0
	for c := range o.Status.Get("initContainerStatuses").Items() {
		sidecar := sidecars[c.Get("name").String()]
		initRestarts += c.Get("restartCount").Int()
		initLast = ended(c, initLast)
		if sidecar {
			sum.restarts += c.Get("restartCount").Int()
			sum.last = ended(c, sum.last)
			if c.Get("ready").True() {
				sum.ready++
			}
		}
		if sum.blocked == "" {
			sum.blocked = initBlocked(c, sidecar, position, inits)
		}
		position++
	}
	for c := range o.Status.Get("containerStatuses").Items() {
		sum.restarts += c.Get("restartCount").Int()
		sum.last = ended(c, sum.last)
		if c.Get("ready").True() && c.Get("state", "running").Exists() {
			sum.ready++
		}
	}
	if sum.blocked != "" {
		sum.restarts, sum.last = initRestarts, initLast
	}
	return sum
}

// initBlocked returns the status of an init container that blocks its pod; "" for others.
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
	return "Init:" + cell.Count(position) + "/" + cell.Count(of)
}

func exitReason(terminated rawjson.Value) string {
	if reason := terminated.Get("reason").String(); reason != "" {
		return reason
	}
	if signal := terminated.Get("signal").Int(); signal != 0 {
		return "Signal:" + cell.Count(int(signal))
	}
	return "ExitCode:" + cell.Count(int(terminated.Get("exitCode").Int()))
}

func showPodReady(o *cell.Object) any {
	c := containersOf(o)
	return cell.Fraction(c.ready, c.total)
}

func showPodRestarts(o *cell.Object) any { return containersOf(o).restarts }

// showLastRestart shows the restarts, and how long ago the last one was.
func showLastRestart(o *cell.Object) any {
	c := containersOf(o)
	shown := cell.Count(int(c.restarts))
	if c.restarts != 0 && !c.last.IsZero() {
		shown += " (" + duration.HumanDuration(time.Since(c.last)) + " ago)"
	}
	return shown
}

// ended returns the later one of a time and that at which a container ended before its last restart.
func ended(c rawjson.Value, last time.Time) time.Time {
	at, err := time.Parse(time.RFC3339, c.Get("lastState", "terminated", "finishedAt").String())
	if err != nil || at.Before(last) {
		return last
	}
	return at
}

func showPodStatus(o *cell.Object) any {
	phase, reason := o.Status.Get("phase").String(), o.Status.Get("reason").String()
	if o.Metadata.Get("deletionTimestamp").Exists() {
		if reason == "NodeLost" {
			return "Unknown"
		}
		return "Terminating"
	}
	if blocked := containersOf(o).blocked; blocked != "" && !cell.Condition(o.Status.Get("conditions"), "Initialized").Get("status").Is("True") {
		return blocked
	}
	shown := phase
	if reason != "" {
		shown = reason
	}
	if gated := cell.Condition(o.Status.Get("conditions"), "PodScheduled"); gated.Get("reason").Is("SchedulingGated") {
		shown = "SchedulingGated"
	}
	return containersReason(o, shown)
}

// containersReason returns the reason of the first waiting or terminated container, else
// shown.
func containersReason(o *cell.Object, shown string) string {
	running := false
	for _, c := range slices.Backward(slices.Collect(o.Status.Get("containerStatuses").Items())) {
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
		if cell.Condition(o.Status.Get("conditions"), "Ready").Get("status").Is("True") {
			return "Running"
		}
		return "NotReady"
	}
	return shown
}

// podEnded returns the condition Completed of a pod that has ended.
func podEnded(o *cell.Object) string {
	message := ""
	phase := o.Status.Get("phase").String()
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

func showPodReadinessGates(o *cell.Object) any {
	gates, open := int64(0), int64(0)
	for gate := range o.Spec.Get("readinessGates").Items() {
		gates++
		if cell.Condition(o.Status.Get("conditions"), gate.Get("conditionType").String()).Get("status").Is("True") {
			open++
		}
	}
	if gates == 0 {
		return cell.None
	}
	return cell.Fraction(open, gates)
}
