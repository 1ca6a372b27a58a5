package apps

import (
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// emptySelectors are the kinds for which a selector of everything is a mistake, and
// what it is called then.
var emptySelectors = map[string]string{"Deployment": "deployment", "ReplicaSet": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemonset"}

// selectorMatches: a workload selects the pods that its template makes.
func selectorMatches(c *rules.Check, m, _ map[string]any, at *field.Path) {
	kind, spec, at := rules.Text(m, "kind"), rules.Object(m, "spec"), at.Field("spec")
	selector, called := rules.Object(spec, "selector"), emptySelectors[kind]
	if c.Any() && !rules.IsSelector(selector) { // which is reported
		if kind != "DaemonSet" {
			c.Invalid(at.Field("selector"), selector, "invalid label selector")
		}
		return
	}
	if called != "" && selector != nil && rules.IsEmptySelector(selector) {
		c.Invalid(at.Field("selector"), selector, "empty selector is invalid for "+called)
	}
	if spec["template"] != nil {
		CheckSelector(c, spec, at)
	}
}

// CheckSelector: no selector selects nothing, and an empty one everything.
func CheckSelector(c *rules.Check, spec map[string]any, at *field.Path) {
	selector, made := rules.Object(spec, "selector"), rules.Object(spec, "template", "metadata", "labels")
	if selector == nil || !rules.Selects(selector, made) {
		c.Invalid(at.Field("template").Field("metadata").Field("labels"), made, "`selector` does not match template `labels`")
	}
}

// workloadTemplate: what should be there always is started again and again.
func workloadTemplate(c *rules.Check, m, _ map[string]any, at *field.Path) {
	CheckRestartPolicy(c, m, at, "Always")
	if deadline := rules.Object(m, "spec", "template", "spec")["activeDeadlineSeconds"]; deadline != nil {
		c.Forbidden(templateOf(at).Field("activeDeadlineSeconds"), "activeDeadlineSeconds in "+startedBy(m)+" is not Supported")
	}
	CheckNoEphemeralContainers(c, m, at)
}

// startedBy is the kind that makes the pods: a deployment leaves it to replica sets.
func startedBy(m map[string]any) string {
	if kind := rules.Text(m, "kind"); kind != "Deployment" {
		return kind
	}
	return "ReplicaSet"
}

// templateOf is the path of the spec in the template of a workload.
func templateOf(at *field.Path) *field.Path {
	return at.Field("spec").Field("template").Field("spec")
}

// CheckRestartPolicy checks the restart policy of a template.
func CheckRestartPolicy(c *rules.Check, m map[string]any, at *field.Path, allowed ...string) {
	policy := rules.Text(rules.Object(m, "spec", "template", "spec"), "restartPolicy")
	if policy != "" && !slices.Contains(allowed, policy) {
		c.NotSupported(templateOf(at).Field("restartPolicy"), policy, allowed...)
	}
}

// CheckNoEphemeralContainers: containers for debugging are added to a pod, not to its template.
func CheckNoEphemeralContainers(c *rules.Check, m map[string]any, at *field.Path) {
	if len(rules.List(rules.Object(m, "spec", "template", "spec"), "ephemeralContainers")) > 0 {
		c.Forbidden(templateOf(at).Field("ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
}

func progressDeadline(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if deadline, ok := rules.Whole(m["progressDeadlineSeconds"]); ok && deadline <= rules.Number(m, "minReadySeconds") {
		c.Invalid(at.Field("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")
	}
}

// updateProgress: an update must be allowed to start or to stop some pod.
func updateProgress(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if isNone(m["maxUnavailable"]) && isNone(m["maxSurge"]) {
		c.Invalid(at.Field("maxUnavailable"), m["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
	}
}

// daemonProgress: an update of a node's pod stops the old one first, or starts the
// new one first.
func daemonProgress(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch unavailable, surge := isNone(m["maxUnavailable"]), isNone(m["maxSurge"]); {
	case unavailable && surge:
		c.Required(at.Field("maxUnavailable"), "cannot be 0 when maxSurge is 0")
	case !unavailable && !surge:
		c.Invalid(at.Field("maxSurge"), m["maxSurge"], "may not be set when maxUnavailable is non-zero")
	}
}

// isNone reports whether a number or percentage comes to none; what is neither does.
func isNone(value any) bool {
	if i, ok := rules.Whole(value); ok {
		return i == 0
	}
	s, _ := value.(string)
	digits, isPercent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	return !isPercent || err != nil || n == 0
}

// statefulSetChanges: what gives pods their identity stays.
func statefulSetChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	mutable := []string{"replicas", "template", "updateStrategy"}
	before := rules.Object(old, "spec")
	if before != nil && !rules.Same(rules.Without(rules.Object(m, "spec"), mutable...), rules.Without(before, mutable...)) {
		c.Forbidden(at.Field("spec"), "updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden")
	}
}

// revisionData: a revision holds some object.
func revisionData(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch m["data"].(type) {
	case map[string]any:
	case nil:
		c.Required(at.Field("data"), "data is mandatory")
	default:
		c.Required(at.Field("data"), "data must be a valid JSON object")
	}
}

// statefulSetWays: pods are made and updated in one of two ways each.
func statefulSetWays(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	if policy := rules.Text(spec, "podManagementPolicy"); policy != "OrderedReady" && policy != "Parallel" {
		c.Invalid(at.Field("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")
	}
	strategy, at := rules.Object(spec, "updateStrategy"), at.Field("updateStrategy")
	switch rolling := strategy["rollingUpdate"]; rules.Text(strategy, "type") {
	case "RollingUpdate":
	case "OnDelete":
		if rolling != nil {
			c.Invalid(at.Field("rollingUpdate"), rolling, "only allowed for updateStrategy 'RollingUpdate'")
		}
	default:
		c.Invalid(at, strategy, "must be 'RollingUpdate' or 'OnDelete'")
	}
}

// claimTemplates says of the claims that a stateful set makes what they are.
func claimTemplates(m map[string]any, _ vocabulary.Vocabulary) {
	for _, claim := range rules.Objects(m, "volumeClaimTemplates") {
		if claim != nil {
			claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
		}
	}
}
