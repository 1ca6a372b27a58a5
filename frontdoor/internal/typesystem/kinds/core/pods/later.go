package pods

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/podspec"
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

// unmaskedProc checks that only a pod with users of its own shows its containers all of /proc.
func unmaskedProc(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["hostUsers"] == false {
		return
	}
	for place, container := range podspec.Containers(m) {
		if how := rules.Object(container, "securityContext")["procMount"]; how == "Unmasked" {
			c.Invalid(place.In(at).Field("securityContext").Field("procMount"), how, "`hostUsers` must be false to use `Unmasked`")
		}
	}
}

// hostSysctls checks that a pod that shares a namespace of the host does not change its kernel
// parameters. An update keeps those that older releases have accepted.
func hostSysctls(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && len(sysctlsOfHost(old)) > 0 {
		return
	}
	for i, shared := range sysctlsOfHost(m) {
		name := rules.Objects(rules.Object(m, "securityContext"), "sysctls")[i]["name"]
		c.Invalid(at.Field("securityContext").Field("sysctls").Item(i).Field("name"), name, "may not be specified when '"+shared+"' is true")
	}
}

// sysctlsOfHost returns the namespaces that a pod shares with the host and that its kernel
// parameters are of, by the index of the parameter.
func sysctlsOfHost(spec map[string]any) map[int]string {
	found := map[int]string{}
	for i, parameter := range rules.Objects(rules.Object(spec, "securityContext"), "sysctls") {
		name := strings.ReplaceAll(rules.Text(parameter, "name"), "/", ".")
		switch ipc := ipcParameters[name] || strings.HasPrefix(name, "fs.mqueue."); {
		case ipc && spec["hostIPC"] == true:
			found[i] = "hostIPC"
		case strings.HasPrefix(name, "net.") && spec["hostNetwork"] == true:
			found[i] = "hostNetwork"
		}
	}
	return found
}

// ipcParameters are the kernel parameters about communication between processes.
var ipcParameters = map[string]bool{"kernel.sem": true, "kernel.shmall": true, "kernel.shmmax": true, "kernel.shmmni": true, "kernel.shm": true,
	"kernel.shm_rmid_forced": true, "kernel.msgmax": true, "kernel.msgmnb": true, "kernel.msgmni": true, "kernel.msg": true}

// uniqueGates checks that scheduling gates have different names.
func uniqueGates(c *rules.Check, m, _ map[string]any, at *field.Path) {
	c.Unique(rules.TextsOf(rules.Objects(m, "schedulingGates"), "name"), at.Field("schedulingGates"))
}

// claimSource checks that a claim of a pod is either a claim that exists or one made from a
// template.
func claimSource(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch named, made := m["resourceClaimName"] != nil, m["resourceClaimTemplateName"] != nil; {
	case named && made:
		c.Invalid(at, m, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
	case !named && !made:
		c.Invalid(at, m, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
	}
}

// claimedResources checks that the containers of a pod use claims that the pod has, each
// of them once.
func claimedResources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	names := map[string]bool{}
	for _, claim := range rules.Objects(m, "resourceClaims") {
		if name := rules.Text(claim, "name"); name != "" {
			names[name] = true
		}
	}
	for place, container := range podspec.Containers(m) {
		if claims := rules.Objects(rules.Object(container, "resources"), "claims"); len(claims) > 0 {
			useClaims(c, claims, names, place.In(at).Field("resources").Field("claims"))
		}
	}
}

// useClaims checks the claims of a container. A claim as a whole includes its requests.
func useClaims(c *rules.Check, claims []map[string]any, names map[string]bool, at *field.Path) {
	seen, parts := map[string]bool{}, map[string]bool{}
	for i, claim := range claims {
		name, request := rules.Text(claim, "name"), rules.Text(claim, "request")
		if name == "" {
			c.Required(at.Item(i), "")
			continue
		}
		shown := name
		if request != "" {
			c.Must(validation.IsDNS1123Label, request, at.Item(i).Field("request"))
			shown += "/" + request
		}
		switch {
		case seen[name]:
			c.Duplicate(at.Item(i), name)
		case seen[shown], request == "" && parts[name]:
			c.Duplicate(at.Item(i), shown)
		}
		seen[shown] = true
		parts[name] = parts[name] || request != ""
		if !names[name] {
			c.NotFoundIn(at.Item(i), name, "must be one of the names in pod.spec.resourceClaims"+listed(names))
		}
	}
}

// listed returns names in the form of messages.
func listed(names map[string]bool) string {
	if len(names) == 0 {
		return " which is empty"
	}
	return ": " + strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// gatedPod checks that a pod that waits at a gate is on no node.
func gatedPod(c *rules.Check, m, old map[string]any, at *field.Path) {
	spec := rules.Object(m, "spec")
	if old == nil && len(rules.List(spec, "schedulingGates")) > 0 && rules.Text(spec, "nodeName") != "" {
		c.Forbidden(at.Field("spec").Field("nodeName"), "cannot be set until all schedulingGates have been cleared")
	}
}

// resizedOnce checks that each resource of a container has one policy of resizing.
func resizedOnce(c *rules.Check, m, _ map[string]any, at *field.Path) {
	c.Unique(rules.TextsOf(rules.Objects(m, "resizePolicy"), "resourceName"), at.Field("resizePolicy"))
}

// restartRules checks that rules about restarts have a policy.
func restartRules(c *rules.Check, m, _ map[string]any, at *field.Path) {
	policy := rules.Text(m, "restartPolicy")
	if policy == "" && len(rules.List(m, "restartPolicyRules")) > 0 {
		c.Required(at.Field("restartPolicy"), "must specify restartPolicy when restart rules are used")
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
	case system == "windows" && signal != "SIGKILL" && signal != "SIGTERM":
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
	for place, container := range podspec.Containers(m) {
		for i, variable := range rules.Objects(container, "env") {
			file := rules.Object(variable, "valueFrom", "fileKeyRef")
			if file == nil {
				continue
			}
			name, at := rules.Text(file, "volumeName"), place.In(at).Field("env").Item(i).Field("valueFrom").Field("fileKeyRef").Field("volumeName")
			switch volume := volumes[name]; {
			case volume == nil:
				c.NotFound(at, name)
			case volume["emptyDir"] == nil:
				c.Invalid(at, name, "referenced volume must be of type emptyDir")
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
