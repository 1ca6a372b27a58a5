package pods

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// podContainers checks that container names are unique and that mounted volumes exist.
func podContainers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	volumes := volumesOf(c, m)
	seen, lasting := map[string]bool{}, map[string]bool{}
	for _, kind := range [...]string{"containers", "initContainers", "ephemeralContainers"} {
		for i, container := range rules.Objects(m, kind) {
			where := &field.Path{Parent: &field.Path{Parent: at, Name: kind}, Index: i}
			name := rules.Text(container, "name")
			if seen[name] && name != "" {
				c.Duplicate(where.Field("name"), name)
			}
			seen[name] = true
			lasting[name] = lasting[name] || kind != "ephemeralContainers"
			mounts(c, container, volumes, where)
			devices(c, container, volumes, where)
			switch kind {
			case "initContainers":
				runsOnce(c, container, where)
			case "ephemeralContainers":
				debugs(c, container, lasting, where)
			}
		}
	}
}

// volumesOf returns the volumes that containers can mount, by name. The pods of a
// StatefulSet also have those of its claim templates.
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

// aClaim is a volume with a claim as its source.
var aClaim = map[string]any{"persistentVolumeClaim": map[string]any{}}

// sidecars is the first release with init containers that run beside the others.
var sidecars, _ = release.Of("1.29")

// runsOnce checks that init containers have no probes and lifecycle hooks, unless they run
// beside the other containers.
func runsOnce(c *rules.Check, container map[string]any, at *field.Path) {
	if container["restartPolicy"] == "Always" && !c.Release.Before(sidecars) {
		return
	}
	why := "must not be set for init containers"
	if !c.Release.Before(sidecars) {
		why = "may not be set for init containers without restartPolicy=Always"
	}
	for _, name := range [...]string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
		if container[name] != nil {
			c.Forbidden(at.Field(name), why)
		}
	}
	for i, policy := range rules.Objects(container, "resizePolicy") {
		if policy["restartPolicy"] == "RestartContainer" {
			c.Invalid(at.Field("resizePolicy").Item(i).Field("restartPolicy"), policy["restartPolicy"], "must not be set to 'RestartContainer' for non-sidecar initContainers")
		}
	}
}

// debugged is the first release whose ephemeral containers have no mounts of parts of volumes.
var debugged, _ = release.Of("1.23")

// debugs checks that an ephemeral container's target exists, and that it has no resources.
func debugs(c *rules.Check, container map[string]any, containers map[string]bool, at *field.Path) {
	if target := rules.Text(container, "targetContainerName"); target != "" && !containers[target] {
		c.NotFound(at.Field("targetContainerName"), target)
	}
	resources := rules.Object(container, "resources")
	if len(rules.Object(resources, "limits"))+len(rules.Object(resources, "requests"))+len(rules.List(resources, "claims")) > 0 {
		c.Forbidden(at.Field("resources"), "cannot be set for an Ephemeral Container")
	}
	if c.Release.Before(debugged) {
		return
	}
	for i, mount := range rules.Objects(container, "volumeMounts") {
		for _, name := range [...]string{"subPath", "subPathExpr"} {
			if rules.Text(mount, name) != "" {
				c.Forbidden(at.Field("volumeMounts").Item(i).Field(name), "cannot be set for an Ephemeral Container")
			}
		}
	}
}

// hostNetworkPorts checks that host ports equal container ports on the host network.
func hostNetworkPorts(c *rules.Check, m, _ map[string]any, at *field.Path) {
	eachPort(m, func(port map[string]any, at func() *field.Path) {
		if rules.Number(port, "hostPort") != rules.Number(port, "containerPort") {
			c.Invalid(at().Field("containerPort"), port["containerPort"], "must match `hostPort` when `hostNetwork` is true")
		}
	}, at)
}

// portsOfHost is hostNetworkPorts of later releases, in which only pods have defaults of host
// ports: those of templates may be absent.
func portsOfHost(c *rules.Check, m, _ map[string]any, at *field.Path) {
	template := at.Parent != nil
	eachPort(m, func(port map[string]any, at func() *field.Path) {
		host := rules.Number(port, "hostPort")
		if host != rules.Number(port, "containerPort") && !(template && host == 0) {
			c.Invalid(at().Field("hostPort"), host, "must match `containerPort` when `hostNetwork` is true")
		}
	}, at)
}

// eachPort calls do with each port of the containers of a pod on the host network.
func eachPort(spec map[string]any, do func(port map[string]any, at func() *field.Path), at *field.Path) {
	if spec["hostNetwork"] != true {
		return
	}
	for i, container := range rules.Objects(spec, "containers") {
		for j, port := range rules.Objects(container, "ports") {
			do(port, func() *field.Path { return at.Field("containers").Item(i).Field("ports").Item(j) })
		}
	}
}

// uniqueHostPorts checks that no two containers that run at the same time use the same host
// port. Init containers run one after the other.
func uniqueHostPorts(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, list := range containerLists {
		var taken map[string]bool
		for i, container := range rules.Objects(m, list) {
			if list == "initContainers" {
				taken = nil
			}
			for j, port := range rules.Objects(container, "ports") {
				if rules.Number(port, "hostPort") == 0 {
					continue
				}
				if taken == nil {
					taken = map[string]bool{}
				}
				hostPort(c, port, taken, at.Field(list).Item(i).Field("ports").Item(j))
			}
		}
	}
}

// hostPort reports a host port that is in taken, and adds it.
func hostPort(c *rules.Check, port map[string]any, taken map[string]bool, at *field.Path) {
	host := rules.Number(port, "hostPort")
	key := fmt.Sprintf("%s/%s/%d", rules.Text(port, "protocol"), rules.Text(port, "hostIP"), host)
	if taken[key] {
		c.Duplicate(at.Field("hostPort"), key)
	}
	taken[key] = true
}

// containerPorts checks that the names of ports are unique.
func containerPorts(c *rules.Check, m, _ map[string]any, at *field.Path) {
	ports := rules.Objects(m, "ports")
	if len(ports) < 2 {
		return
	}
	seen := make(map[string]bool, len(ports))
	for i, port := range ports {
		name := rules.Text(port, "name")
		if name != "" && seen[name] {
			c.Duplicate(at.Field("ports").Item(i).Field("name"), name)
		}
		seen[name] = true
	}
}

// containerProbes checks that liveness and startup probes have a successThreshold of 1, and
// readiness probes no grace period.
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

// defaultPullPolicy defaults imagePullPolicy: Always for images without tag or digest and
// for the tag latest, else IfNotPresent.
func defaultPullPolicy(m map[string]any, _ vocabulary.Vocabulary) {
	if !rules.Empty(m["imagePullPolicy"]) {
		return
	}
	m["imagePullPolicy"] = pullPolicy(rules.Text(m, "image"))
}

// imagePolicyOfVolume defaults the pull policy of a volume with an image.
func imagePolicyOfVolume(m map[string]any, _ vocabulary.Vocabulary) {
	if rules.Empty(m["pullPolicy"]) {
		m["pullPolicy"] = pullPolicy(rules.Text(m, "reference"))
	}
}

// pullPolicy returns the default policy of an image: those tagged latest may change. No image
// has no tag.
func pullPolicy(image string) string {
	if image == "" {
		return "IfNotPresent"
	}
	name, _, pinned := strings.Cut(image, "@")
	repository := name[strings.LastIndex(name, "/")+1:]
	if _, tag, tagged := strings.Cut(repository, ":"); !pinned && !tagged || tag == "latest" {
		return "Always"
	}
	return "IfNotPresent"
}
