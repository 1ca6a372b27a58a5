package apps

import (
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// emptySelectors are the kinds for which an empty selector is an error, with their name in
// the message.
var emptySelectors = map[string]string{"Deployment": "deployment", "ReplicaSet": "deployment", "StatefulSet": "statefulset", "DaemonSet": "daemonset"}

// selectorMatches checks that the selector of a workload matches the labels of its
// template.
func selectorMatches(c *rules.Check, m, _ map[string]any, at *field.Path) {
	kind, spec, at := rules.Text(m, "kind"), rules.Object(m, "spec"), at.Field("spec")
	selector, called := rules.Object(spec, "selector"), emptySelectors[kind]
	if c.Any() && !rules.IsSelector(selector) { // reported already
		if kind != "DaemonSet" {
			c.Invalid(at.Field("selector"), selector, "invalid label selector")
		}
		return
	}
	if called != "" && selector != nil && rules.IsEmptySelector(selector) {
		c.Invalid(at.Field("selector"), selector, "empty selector is invalid for "+called)
	}
	if spec["template"] != nil && (selector != nil || kind != "ReplicationController") { // whose selector is a map
		CheckSelector(c, spec, at)
	}
}

// CheckSelector checks that the selector matches the labels of the template. A missing
// selector matches nothing, an empty one everything.
func CheckSelector(c *rules.Check, spec map[string]any, at *field.Path) {
	selector, made := rules.Object(spec, "selector"), rules.Object(spec, "template", "metadata", "labels")
	if selector == nil || !rules.Selects(selector, made) {
		c.Invalid(at.Field("template").Field("metadata").Field("labels"), made, "`selector` does not match template `labels`")
	}
}

// workloadTemplate checks that the pods of a workload run forever: restartPolicy Always and
// no activeDeadlineSeconds.
func workloadTemplate(c *rules.Check, m, _ map[string]any, at *field.Path) {
	CheckRestartPolicy(c, m, at, "Always")
	if deadline := rules.Object(m, "spec", "template", "spec")["activeDeadlineSeconds"]; deadline != nil {
		c.Forbidden(templateOf(at).Field("activeDeadlineSeconds"), "activeDeadlineSeconds in "+startedBy(m)+" is not Supported")
	}
	CheckNoEphemeralContainers(c, m, at)
}

// startedBy returns the kind that creates the pods, for messages: the ReplicaSet for a
// Deployment.
func startedBy(m map[string]any) string {
	if kind := rules.Text(m, "kind"); kind != "Deployment" {
		return kind
	}
	return "ReplicaSet"
}

// templateOf returns the path of the pod spec in a workload.
func templateOf(at *field.Path) *field.Path {
	return at.Field("spec").Field("template").Field("spec")
}

// CheckRestartPolicy checks the restart policy of a pod template.
func CheckRestartPolicy(c *rules.Check, m map[string]any, at *field.Path, allowed ...string) {
	policy := rules.Text(rules.Object(m, "spec", "template", "spec"), "restartPolicy")
	if policy != "" && !slices.Contains(allowed, policy) {
		c.NotSupported(templateOf(at).Field("restartPolicy"), policy, allowed...)
	}
}

// CheckNoEphemeralContainers checks that a pod template has no ephemeral containers.
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

// updateProgress checks that a rolling update can start or stop a pod.
func updateProgress(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if isNone(m["maxUnavailable"]) && isNone(m["maxSurge"]) {
		c.Invalid(at.Field("maxUnavailable"), m["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
	}
}

// daemonProgress checks that exactly one of maxUnavailable and maxSurge is not zero.
func daemonProgress(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch unavailable, surge := isNone(m["maxUnavailable"]), isNone(m["maxSurge"]); {
	case unavailable && surge:
		c.Required(at.Field("maxUnavailable"), "cannot be 0 when maxSurge is 0")
	case !unavailable && !surge:
		c.Invalid(at.Field("maxSurge"), m["maxSurge"], "may not be set when maxUnavailable is non-zero")
	}
}

// isNone reports whether a number or percentage is zero, or invalid.
func isNone(value any) bool {
	if i, ok := rules.Whole(value); ok {
		return i == 0
	}
	s, _ := value.(string)
	digits, isPercent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	return !isPercent || err != nil || n == 0
}

// statefulSetChanges checks the immutable fields of a StatefulSet, which determine the
// identity of its pods.
func statefulSetChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	mutable, listed := []string{"replicas", "template", "updateStrategy"}, "'replicas', 'template', and 'updateStrategy'"
	if !c.Release.Before(ordinalsMutable) {
		mutable = append(mutable, "ordinals", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds")
		listed = "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
	}
	before := rules.Object(old, "spec")
	if before != nil && !rules.Same(rules.Without(rules.Object(m, "spec"), mutable...), rules.Without(before, mutable...)) {
		c.Forbidden(at.Field("spec"), "updates to statefulset spec for fields other than "+listed+" are forbidden")
	}
}

// ordinalsMutable is the first release in which all that does not determine the identity of the
// pods of a StatefulSet may change.
var ordinalsMutable, _ = release.Of("1.33")

// revisionData checks that a revision holds an object; later releases check only new ones,
// since the data is immutable.
func revisionData(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && !c.Release.Before(release.V136) {
		return
	}
	switch m["data"].(type) {
	case map[string]any:
	case nil:
		c.Required(at.Field("data"), "data is mandatory")
	default:
		c.Required(at.Field("data"), "data must be a valid JSON object")
	}
}

// statefulSetPolicies validates podManagementPolicy and updateStrategy.
func statefulSetPolicies(c *rules.Check, spec, _ map[string]any, at *field.Path) {
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

// claimTemplates sets the apiVersion and kind of volume claim templates.
func claimTemplates(m map[string]any, _ vocabulary.Vocabulary) {
	for _, claim := range rules.Objects(m, "volumeClaimTemplates") {
		if claim != nil {
			claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
		}
	}
}
