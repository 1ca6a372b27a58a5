package pods

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// ownUsers checks that a pod with users of its own shares no other namespaces of the host.
func ownUsers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["hostUsers"] != false {
		return
	}
	for _, shared := range [...]struct{ field, shown string }{{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}} {
		if m[shared.field] == true && !(shared.field == "hostNetwork" && c.On("UserNamespacesHostNetworkSupport")) {
			c.Forbidden(at.Field(shared.shown), "when `hostUsers` is false")
		}
	}
	for _, list := range containerLists {
		for i, container := range rules.Objects(m, list) {
			if len(rules.List(container, "volumeDevices")) > 0 {
				c.Forbidden(at.Field(list).Item(i).Field("volumeDevices"), "when `hostUsers` is false")
			}
		}
	}
}

// windows is the operating system whose pods have no Linux settings.
const windows = "windows"

// osFields checks that a pod has no settings of another operating system.
func osFields(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name := rules.Text(rules.Object(m, "os"), "name")
	if m["os"] != nil && name == "" {
		c.Required(at.Field("os").Field("name"), "")
	}
	own, where := rules.Object(m, "securityContext"), at.Field("securityContext")
	switch name {
	case windows:
		for _, shared := range [...]string{"hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"} {
			if value := m[shared]; value == true || value == false && (shared == "hostUsers" || shared == "shareProcessNamespace") {
				c.Forbidden(at.Field(shared), "cannot be set for a windows pod")
			}
		}
		for _, setting := range linuxSettings {
			if !rules.Empty(own[setting]) {
				c.Forbidden(where.Field(setting), "cannot be set for a windows pod")
			}
		}
		if m["resources"] != nil {
			c.Forbidden(at.Field("resources"), "may not be set for a windows pod")
		}
	case "linux":
		if own["windowsOptions"] != nil {
			c.Forbidden(where.Field("windowsOptions"), "windows options cannot be set for a linux pod")
		}
	}
}

// linuxSettings are the fields of a pod's security context that only Linux has.
var linuxSettings = [...]string{"appArmorProfile", "fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsUser", "seLinuxChangePolicy", "seLinuxOptions",
	"seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls"}

// spreadKeys checks the label keys of topology spread constraints, and when the number of
// domains counts.
func spreadKeys(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["minDomains"] != nil && m["whenUnsatisfiable"] != "DoNotSchedule" {
		c.Invalid(at.Field("minDomains"), m["minDomains"],
			fmt.Sprintf("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %s", rules.Text(m, "whenUnsatisfiable")))
	}
	labelKeys(c, m, at)
}

// labelKeys checks the keys whose values are added to a selector: they need a selector, and
// are in one of the lists only.
func labelKeys(c *rules.Check, m map[string]any, at *field.Path) {
	match, mismatch := rules.Texts(m, "matchLabelKeys"), rules.Texts(m, "mismatchLabelKeys")
	for _, list := range [...]string{"matchLabelKeys", "mismatchLabelKeys"} {
		keys := rules.Texts(m, list)
		if len(keys) > 0 && m["labelSelector"] == nil {
			c.Forbidden(at.Field(list), "must not be specified when labelSelector is not set")
		}
		for i, key := range keys {
			for _, problem := range validation.IsQualifiedName(key) {
				c.Invalid(at.Field(list).Item(i), key, problem)
			}
		}
	}
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			c.Invalid(at.Field("matchLabelKeys").Item(i), key, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}

// affinityKeys checks the label keys of a term of affinity.
func affinityKeys(c *rules.Check, m, _ map[string]any, at *field.Path) { labelKeys(c, m, at) }

// claimedResources checks that the containers of a pod use claims that the pod has, each
// of them once.
func claimedResources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	names := map[string]bool{}
	for _, claim := range rules.Objects(m, "resourceClaims") {
		names[rules.Text(claim, "name")] = true
	}
	for _, list := range containerLists {
		for i, container := range rules.Objects(m, list) {
			seen := map[string]bool{}
			where := at.Field(list).Item(i).Field("resources").Field("claims")
			for j, claim := range rules.Objects(rules.Object(container, "resources"), "claims") {
				name, request := rules.Text(claim, "name"), rules.Text(claim, "request")
				shown := name
				if request != "" {
					shown += "/" + request
				}
				switch {
				case name == "":
					c.Required(where.Item(j), "")
				case seen[shown] || seen[name]:
					c.Duplicate(where.Item(j), shown)
				case !names[name]:
					c.NotFound(where.Item(j), name)
				}
				seen[shown] = true
			}
		}
	}
}

// gatedPod checks that a pod that waits at a gate is on no node.
func gatedPod(c *rules.Check, m, old map[string]any, at *field.Path) {
	spec := rules.Object(m, "spec")
	if old == nil && len(rules.List(spec, "schedulingGates")) > 0 && rules.Text(spec, "nodeName") != "" {
		c.Forbidden(at.Field("spec").Field("nodeName"), "cannot be set until all schedulingGates have been cleared")
	}
}

// restartRules checks that rules about restarts have a policy, and that each resource has one
// policy of resizing.
func restartRules(c *rules.Check, m, _ map[string]any, at *field.Path) {
	policy := rules.Text(m, "restartPolicy")
	if policy == "" && len(rules.List(m, "restartPolicyRules")) > 0 {
		c.Required(at.Field("restartPolicy"), "must specify restartPolicy when restart rules are used")
	}
	seen := map[string]bool{}
	for i, resize := range rules.Objects(m, "resizePolicy") {
		name := rules.Text(resize, "resourceName")
		if seen[name] {
			c.Duplicate(at.Field("resizePolicy").Item(i), resize)
		}
		seen[name] = true
	}
}

// containerRestarts checks, for all containers of a pod, when they are restarted and how long they
// take to stop.
func containerRestarts(c *rules.Check, m, _ map[string]any, at *field.Path) {
	system := rules.Text(rules.Object(m, "os"), "name")
	for _, list := range containerLists {
		for i, container := range rules.Objects(m, list) {
			at := at.Field(list).Item(i)
			for _, policy := range rules.Objects(container, "resizePolicy") {
				if how := policy["restartPolicy"]; m["restartPolicy"] == "Never" && how != "NotRequired" {
					c.Invalid(at.Field("resizePolicy"), how, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
				}
			}
			hooks := rules.Object(container, "lifecycle")
			for _, hook := range [...]string{"postStart", "preStop"} {
				sleeps(c, m, rules.Object(hooks, hook, "sleep"), at.Field("lifecycle").Field(hook).Field("sleep"))
			}
			stops(c, system, rules.Text(hooks, "stopSignal"), at.Field("lifecycle").Field("stopSignal"))
		}
	}
}

// sleeps checks that a pause is no longer than a pod has to stop.
func sleeps(c *rules.Check, spec, pause map[string]any, at *field.Path) {
	grace, ok := rules.Whole(spec["terminationGracePeriodSeconds"])
	if n := rules.Number(pause, "seconds"); pause != nil && ok && (n < 0 || n > grace) {
		c.Invalid(at, n, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))
	}
}

// stops checks that the operating system of a pod has a signal.
func stops(c *rules.Check, system, signal string, at *field.Path) {
	switch {
	case signal == "":
	case system == "":
		c.Forbidden(at, "may not be set for containers with empty `spec.os.name`")
	case system == windows && signal != "SIGKILL" && signal != "SIGTERM":
		c.NotSupported(at, signal, "SIGKILL", "SIGTERM")
	}
}

// hostnameOverride checks that a pod with a name of its own on its host has no other.
func hostnameOverride(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["hostnameOverride"] == nil {
		return
	}
	for _, name := range [...]string{"setHostnameAsFQDN", "hostNetwork"} {
		if m[name] == true {
			c.Forbidden(at.Field("hostnameOverride"), "may not be specified when "+name+" is true")
		}
	}
}

// filesOfVolumes checks that variables from files come from volumes that end with the pod.
func filesOfVolumes(c *rules.Check, m, _ map[string]any, at *field.Path) {
	volumes := volumesOf(c, m)
	for _, list := range [...]string{"initContainers", "containers", "ephemeralContainers"} {
		for i, container := range rules.Objects(m, list) {
			for j, variable := range rules.Objects(container, "env") {
				name := rules.Text(rules.Object(variable, "valueFrom", "fileKeyRef"), "volumeName")
				at := at.Field(list).Item(i).Field("env").Item(j).Field("valueFrom").Field("fileKeyRef").Field("volumeName")
				switch volume := volumes[name]; {
				case name == "":
				case volume == nil:
					c.NotFound(at, name)
				case volume["emptyDir"] == nil:
					c.Invalid(at, name, "referenced volume must be of type emptyDir")
				}
			}
		}
	}
}

// recursiveReadOnly checks that a mount whose mounts below are read-only is read-only itself.
func recursiveReadOnly(c *rules.Check, m, _ map[string]any, at *field.Path) {
	how := m["recursiveReadOnly"]
	if how != "Enabled" && how != "IfPossible" {
		return
	}
	at = at.Parent.Field("recursiveReadOnly")
	if m["readOnly"] != true {
		c.Forbidden(at, "may only be specified when readOnly is true")
	}
	if way := m["mountPropagation"]; way != nil && way != "None" {
		c.Forbidden(at, "may only be specified when mountPropagation is None or not specified")
	}
}
