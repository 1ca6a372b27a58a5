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
		"storage":        {"resize", plain(container(one)), plain(container(`resources: {requests: {cpu: 1, ephemeral-storage: 1}}`)), "spec.containers[0].resources.requests: Forbidden: only cpu and memory"},
		"reordered":      {"resize", plain(`containers: [{name: a, image: b}, {name: c, image: b}]`), plain(`containers: [{name: c, image: b}, {name: a, image: b}]`), "spec.containers[0].name: Invalid value"},
		"whole pod":      {"resize", plain(`resources: {requests: {cpu: 1}}, ` + container("")), plain(`resources: {requests: {cpu: 2}}, ` + container("")), ""},
		"no whole":       {"resize", plain(`resources: {requests: {cpu: 1}}, ` + container(one)), plain(container(one)), "spec.resources: Forbidden: pod-level resources cannot be removed"},
		"less of whole":  {"resize", plain(`resources: {requests: {cpu: 1, memory: 1}}, ` + container("")), plain(`resources: {requests: {cpu: 1}}, ` + container("")), "spec.resources.requests: Forbidden: resource requests cannot be removed"},
		"init container": {"resize", plain(init(one)), plain(init(two)), ""},
		"sidecar":        {"resize", plain(init(`restartPolicy: Always, ` + one)), plain(init(`restartPolicy: Always, ` + two)), ""},
		"image":          {"resize", plain(container(one)), plain(`containers: [{name: a, image: b, workingDir: /a, ` + one + `}]`), "spec: Forbidden: pod updates may not change fields"},
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
