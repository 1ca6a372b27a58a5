package pods

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// podContainers: names are unique among all containers, and what they mount is
// there.
func podContainers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	volumes := volumesOf(c, m)
	seen := map[string]bool{}
	for _, kind := range [...]string{"initContainers", "containers", "ephemeralContainers"} {
		for i, container := range rules.Objects(m, kind) {
			where := &field.Path{Parent: &field.Path{Parent: at, Name: kind}, Index: i}
			name := rules.Text(container, "name")
			if seen[name] && name != "" {
				c.Duplicate(where.Field("name"), name)
			}
			seen[name] = true
			mounts(c, container, volumes, where)
			switch kind {
			case "initContainers":
				runsOnce(c, container, where)
			case "ephemeralContainers":
				debugs(c, container, seen, where)
			}
		}
	}
}

// volumesOf returns the volumes that containers can mount, by name. A stateful set
// gives its pods those of its claims.
func volumesOf(c *rules.Check, spec map[string]any) map[string]map[string]any {
	volumes := map[string]map[string]any{}
	for _, volume := range rules.Objects(spec, "volumes") {
		volumes[rules.Text(volume, "name")] = volume
	}
	for _, claim := range rules.Objects(rules.Object(c.Root, "spec"), "volumeClaimTemplates") {
		volumes[rules.Text(rules.Object(claim, "metadata"), "name")] = aClaim
	}
	return volumes
}

// aClaim is a volume that is a claim.
var aClaim = map[string]any{"persistentVolumeClaim": map[string]any{}}

// mounts: a container mounts volumes, and uses claims of blocks as devices.
func mounts(c *rules.Check, container map[string]any, volumes map[string]map[string]any, at *field.Path) {
	for i, mount := range rules.Objects(container, "volumeMounts") {
		if name := rules.Text(mount, "name"); volumes[name] == nil && name != "" {
			c.NotFound(at.Field("volumeMounts").Item(i).Field("name"), name)
		}
	}
	for i, device := range rules.Objects(container, "volumeDevices") {
		where := at.Field("volumeDevices").Item(i).Field("name")
		name := rules.Text(device, "name")
		switch volume := volumes[name]; {
		case name == "":
		case volume == nil:
			c.NotFound(where, name)
		case volume["persistentVolumeClaim"] == nil && volume["ephemeral"] == nil:
			c.Invalid(where, name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
	}
}

// runsOnce: a container that runs to its end before the others has no probes.
func runsOnce(c *rules.Check, container map[string]any, at *field.Path) {
	for _, name := range [...]string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
		if container[name] != nil {
			c.Forbidden(at.Field(name), "must not be set for init containers")
		}
	}
}

// debugs: an ephemeral container looks at another one, and is guaranteed nothing.
func debugs(c *rules.Check, container map[string]any, containers map[string]bool, at *field.Path) {
	if target := rules.Text(container, "targetContainerName"); target != "" && !containers[target] {
		c.NotFound(at.Field("targetContainerName"), target)
	}
	if resources := rules.Object(container, "resources"); len(rules.Object(resources, "limits"))+len(rules.Object(resources, "requests")) > 0 {
		c.Forbidden(at.Field("resources"), "cannot be set for an Ephemeral Container")
	}
}

// hostNetworkPorts: on the host's network a container's port is the host's, and no
// two containers have the same.
func hostNetworkPorts(c *rules.Check, m, _ map[string]any, at *field.Path) {
	var taken map[string]bool
	for i, container := range rules.Objects(m, "containers") {
		for j, port := range rules.Objects(container, "ports") {
			host := rules.Number(port, "hostPort")
			wrong := m["hostNetwork"] == true && host != rules.Number(port, "containerPort")
			if host == 0 && !wrong {
				continue
			}
			where := at.Field("containers").Item(i).Field("ports").Item(j)
			if wrong {
				c.Invalid(where.Field("containerPort"), port["containerPort"], "must match `hostPort` when `hostNetwork` is true")
			}
			key := fmt.Sprintf("%s/%s/%d", rules.Text(port, "protocol"), rules.Text(port, "hostIP"), host)
			if taken[key] && host != 0 {
				c.Duplicate(where.Field("hostPort"), key)
			}
			if taken == nil {
				taken = map[string]bool{}
			}
			taken[key] = true
		}
	}
}

// containerMembers: named ports are told apart, and a device is not where a volume
// is.
func containerMembers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	ports := rules.Objects(m, "ports")
	for i, port := range ports {
		for _, other := range ports[:i] {
			if name := rules.Text(port, "name"); name != "" && name == rules.Text(other, "name") {
				c.Duplicate(at.Field("ports").Item(i).Field("name"), name)
				break
			}
		}
	}
	devices := rules.Objects(m, "volumeDevices")
	for i, mount := range rules.Objects(m, "volumeMounts") {
		for _, device := range devices {
			if path := rules.Text(mount, "mountPath"); path != "" && path == rules.Text(device, "devicePath") {
				c.Invalid(at.Field("volumeMounts").Item(i).Field("mountPath"), path, "must not already exist as a path in volumeDevices")
			}
		}
	}
}

// containerProbes: what is alive or started once is so.
func containerProbes(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, name := range [...]string{"livenessProbe", "startupProbe"} {
		if probe := rules.Object(m, name); probe != nil && probe["successThreshold"] != nil && rules.Number(probe, "successThreshold") != 1 {
			c.Invalid(at.Field(name).Field("successThreshold"), probe["successThreshold"], "must be 1")
		}
	}
	if rules.Number(rules.Object(m, "readinessProbe"), "terminationGracePeriodSeconds") != 0 {
		c.Invalid(at.Field("readinessProbe").Field("terminationGracePeriodSeconds"),
			rules.Object(m, "readinessProbe")["terminationGracePeriodSeconds"], "must not be set for readinessProbes")
	}
}

func escalation(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["allowPrivilegeEscalation"] != false {
		return
	}
	where := at.Field("allowPrivilegeEscalation")
	if m["privileged"] == true {
		c.Invalid(where, false, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
	}
	for _, capability := range rules.Texts(rules.Object(m, "capabilities"), "add") {
		if capability == "CAP_SYS_ADMIN" {
			c.Invalid(where, false, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
		}
	}
}

// pullPolicy pulls an image that can change each time.
func pullPolicy(m map[string]any, _ vocabulary.Vocabulary) {
	if !rules.Empty(m["imagePullPolicy"]) {
		return
	}
	m["imagePullPolicy"] = "IfNotPresent"
	name, _, pinned := strings.Cut(rules.Text(m, "image"), "@")
	repository := name[strings.LastIndex(name, "/")+1:]
	if _, tag, tagged := strings.Cut(repository, ":"); !pinned && !tagged || tag == "latest" {
		m["imagePullPolicy"] = "Always"
	}
}
