package schema

import (
	"errors"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
)

// TestPodSubresources checks which changes of a pod its subresources refuse.
func TestPodSubresources(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	ty, _ := types.Lookup("", "v1", "pods")
	pod := func(annotations, spec, status string) string {
		return `{metadata: {name: a, namespace: b, annotations: {` + annotations + `}}, spec: {` + spec + `}, status: {` + status + `}}`
	}
	container := func(resources string) string { return `containers: [{name: a, image: b, ` + resources + `}]` }
	plain := func(spec string) string { return pod("", spec, "") }
	const one, two = `resources: {requests: {cpu: 1}}`, `resources: {requests: {cpu: 2}}`
	const mirror = `platform.io/config.mirror: x`
	const running = `containerStatuses: [{name: a, image: b, imageID: "", ready: true, restartCount: 0, state: {running: {}}`
	init := func(fields string) string {
		return `containers: [{name: a, image: b, ` + one + `}], initContainers: [{name: i, image: b, ` + fields + `}]`
	}
	for name, c := range map[string]struct{ part, before, after, want string }{
		"resize":         {"resize", plain(container(one)), plain(container(two)), ""},
		"mirror":         {"resize", pod(mirror, "nodeName: n1, "+container(one), ""), pod(mirror, "nodeName: n1, "+container(two), ""), "spec: Forbidden: static pods cannot be resized"},
		"windows":        {"resize", plain("os: {name: windows}, " + container(one)), plain("os: {name: windows}, " + container(two)), "spec: Forbidden: windows pods cannot be resized"},
		"old node":       {"resize", pod("", container(one), running+`}]`), pod("", container(two), running+`}]`), "spec: Forbidden: Pod running on node without support for resize"},
		"node":           {"resize", pod("", container(one), running+`, resources: {requests: {cpu: 1}}}]`), pod("", container(two), running+`, resources: {requests: {cpu: 1}}}]`), ""},
		"removed":        {"resize", plain(container(`resources: {requests: {cpu: 1, memory: 1Gi}}`)), plain(container(one)), "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"},
		"quality":        {"resize", plain(container(one)), plain(container(`resources: {requests: {cpu: 1, memory: 1}, limits: {cpu: 1, memory: 1}}`)), `spec: Invalid value: "Burstable": Pod QOS Class may not change`},
		"storage":        {"resize", plain(container(one)), plain(container(`resources: {requests: {cpu: 1, ephemeral-storage: 1}}`)), "spec: Forbidden: only cpu and memory resources are mutable"},
		"reordered":      {"resize", plain(`containers: [{name: a, image: b}, {name: c, image: b}]`), plain(`containers: [{name: c, image: b}, {name: a, image: b}]`), "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize\nspec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize"},
		"whole pod":      {"resize", plain(`resources: {requests: {cpu: 1}}, ` + container("")), plain(`resources: {requests: {cpu: 2}}, ` + container("")), ""},
		"no whole":       {"resize", plain(`resources: {requests: {cpu: 1}}, ` + container(one)), plain(container(one)), "spec.resources: Forbidden: pod-level resources cannot be removed"},
		"less of whole":  {"resize", plain(`resources: {requests: {cpu: 1, memory: 1}}, ` + container("")), plain(`resources: {requests: {cpu: 1}}, ` + container("")), "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed"},
		"init container": {"resize", plain(init(one)), plain(init(two)), ""},
		"sidecar":        {"resize", plain(init(`restartPolicy: Always, ` + one)), plain(init(`restartPolicy: Always, ` + two)), ""},
		"policy":         {"resize", plain(container(one)), plain(container(one + `, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]`)), "spec: Forbidden: only cpu and memory resources are mutable"},
		"more":           {"resize", plain(container(one)), plain(container(one) + `, initContainers: [{name: i, image: b}]`), "spec.initContainers: Forbidden: initContainers may not be added or removed on resize"},
		"debugger":       {"ephemeralcontainers", plain(container("")), plain(container("") + `, ephemeralContainers: [{name: d, image: e, targetContainerName: a}]`), ""},
		"mirror's":       {"ephemeralcontainers", pod(mirror, "nodeName: n1, "+container(""), ""), pod(mirror, "nodeName: n1, "+container("")+`, ephemeralContainers: [{name: d, image: e}]`, ""), "spec: Forbidden: static pods do not support ephemeral containers"},
		"target":         {"ephemeralcontainers", plain(container("")), plain(container("") + `, ephemeralContainers: [{name: d, image: e}, {name: f, image: e, targetContainerName: d}]`), `spec.ephemeralContainers[1].targetContainerName: Not found: "d"`},
		"part of volume": {"ephemeralcontainers", plain(`volumes: [{name: v}], ` + container("")), plain(`volumes: [{name: v}], ` + container("") + `, ephemeralContainers: [{name: d, image: e, volumeMounts: [{name: v, mountPath: /v, subPath: w}]}]`), "spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container"},
		"restarted":      {"ephemeralcontainers", plain(container("")), plain(container("") + `, ephemeralContainers: [{name: d, image: e, restartPolicy: Always}]`), "spec.ephemeralContainers[0].restartPolicy: Forbidden: cannot be set for an Ephemeral Container"},
	} {
		before, after := decode(t, c.before), decode(t, c.after)
		for _, object := range []map[string]any{before, after} {
			if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var s *services.Status
		causes := ""
		if errors.As(engine.ValidateChange(t.Context(), Change{Type: ty, Subresource: c.part, Object: after, Old: before}), &s) {
			for _, cause := range s.Details.Causes {
				causes += cause.Field + ": " + cause.Message + "\n"
			}
		}
		if c.want == "" && causes != "" || c.want != "" && !sameLines(causes, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, causes, c.want)
		}
	}
}

// TestPodStatus checks which writes of the status of a pod release 1.36 refuses.
func TestPodStatus(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	ty, _ := types.Lookup("", "v1", "pods")
	pod := func(spec, status string) map[string]any {
		object := decode(t, `{metadata: {name: a, namespace: b}, spec: {resourceClaims: [{name: gpu, resourceClaimName: c}], `+spec+`}, status: {`+status+`}}`)
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Fatal(err)
		}
		return object
	}
	const once = `restartPolicy: Never, containers: [{name: a, image: b, resources: {requests: {example.com/x: 1}, limits: {example.com/x: 1}, claims: [{name: gpu}]}}]`
	const again = `restartPolicy: Never, containers: [{name: a, image: b, restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [3]}}]}]`
	container := func(state string) string {
		return `containerStatuses: [{name: a, image: b, imageID: "", ready: true, restartCount: 0, ` + state + `}]`
	}
	ended := container(`state: {terminated: {exitCode: 3}}`)
	for name, c := range map[string]struct{ spec, before, after, want string }{
		"nothing":        {once, "", "", ""},
		"quality":        {once, "", "qosClass: Guaranteed", `status.qosClass: Invalid value: "Guaranteed": field is immutable`},
		"same quality":   {once, "", "qosClass: BestEffort", ""},
		"generation":     {once, "", "observedGeneration: -1, conditions: [{type: Ready, status: 'True', observedGeneration: -1}]", "status.conditions[0].observedGeneration: Invalid value: -1\nstatus.observedGeneration: Invalid value: -1: must be a non-negative integer"},
		"ended":          {once, ended, container(`state: {running: {}}`), "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"},
		"ruled":          {again, ended, container(`state: {running: {}}`), ""},
		"host":           {once, "", "hostIP: 1.1.1.1, hostIPs: [{ip: 1.1.1.2}, {ip: 1.1.1.3}]", "status.hostIPs: Invalid value: [{\"ip\":\"1.1.1.2\"},{\"ip\":\"1.1.1.3\"}]: may specify no more than one IP for each IP family\nstatus.hostIPs[0].ip: Invalid value: \"1.1.1.2\": must be equal to `hostIP`"},
		"stored address": {once, "podIPs: [{ip: x}]", "podIPs: [{ip: x}]", ""},
		"bound":          {"nodeName: n1, " + once, "", "nominatedNodeName: m", "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"},
		"claims":         {once, "", "resourceClaimStatuses: [{name: gpu}, {name: gpu}, {name: x}]", "status.resourceClaimStatuses[1].name: Duplicate value: \"gpu\"\nstatus.resourceClaimStatuses[2].name: Invalid value: \"x\": must match the name"},
		"extended":       {once, "", "extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: a, resourceName: example.com/x, requestName: r}]}", ""},
		"no extended": {once, "", "extendedResourceClaimStatus: {resourceClaimName: '', requestMappings: [{containerName: x, resourceName: a, requestName: r}, {containerName: a, resourceName: a, requestName: r}]}",
			"status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: \"x\": must match the name of an entry\nstatus.extendedResourceClaimStatus.requestMappings[1].resourceName: Invalid value: \"a\": must match the extended resource name\nstatus.extendedResourceClaimStatus.resourceClaimName: Required value"},
		"user":         {once, "", container(`user: {linux: {uid: -1, gid: 0, supplementalGroups: [2147483648]}}`), "status.containerStatuses[0].user.linux.supplementalGroups[0]: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive\nstatus.containerStatuses[0].user.linux.uid: Invalid value: -1"},
		"windows user": {"os: {name: windows}, " + once, "", container(`user: {linux: {uid: 1, gid: 0}}`), "status.containerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod"},
		"health":       {once, "", container(`allocatedResourcesStatus: [{name: "claim:gpu", resources: [{resourceID: a, health: Healthy}]}, {name: example.com/x}]`), ""},
		"no health": {once, "", container(`allocatedResourcesStatus: [{name: "claim:x"}, {name: cpu, resources: [{resourceID: a, health: Well}, {resourceID: a, health: Unknown, message: ""}]}]`),
			"status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: \"claim:x\": must match one of the container's resource claims\nstatus.containerStatuses[0].allocatedResourcesStatus[1].name: Invalid value: \"cpu\": must match one of the container's resource requests\n" +
				"status.containerStatuses[0].allocatedResourcesStatus[1].resources[0].health: Unsupported value: \"Well\"\nstatus.containerStatuses[0].allocatedResourcesStatus[1].resources[1].message: Required value\nstatus.containerStatuses[0].allocatedResourcesStatus[1].resources[1].resourceID: Duplicate value: \"a\""},
	} {
		before, after := pod(c.spec, c.before), pod(c.spec, c.after)
		var s *services.Status
		causes := ""
		if errors.As(engine.ValidateChange(t.Context(), Change{Type: ty, Subresource: "status", Object: after, Old: before}), &s) {
			for _, cause := range s.Details.Causes {
				causes += cause.Field + ": " + cause.Message + "\n"
			}
		}
		if c.want == "" && causes != "" || c.want != "" && !sameLines(causes, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, causes, c.want)
		}
	}
}
