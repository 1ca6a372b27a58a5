package compute

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

// TestWholePod checks the requests and the quality of service of pods with limits of their
// own.
func TestWholePod(t *testing.T) {
	for name, c := range map[string]struct{ spec, requests, class string }{
		"no limits":  {`{resources: {requests: {cpu: 1}}, containers: [{}]}`, `{cpu: 1}`, "Burstable"},
		"limits":     {`{resources: {limits: {cpu: "2", memory: 1Gi, hugepages-2Mi: 4Mi}}, containers: [{}]}`, `{cpu: "2", memory: 1Gi, hugepages-2Mi: 4Mi}`, "Guaranteed"},
		"containers": {`{resources: {limits: {cpu: "2"}}, containers: [{resources: {requests: {cpu: 100m}}}, {resources: {requests: {cpu: 200m}}}]}`, `{cpu: 300m}`, "Burstable"},
		"init": {`{resources: {limits: {cpu: "2"}}, initContainers: [{resources: {requests: {cpu: "1"}}}], containers: [{resources: {requests: {cpu: 100m}}}]}`,
			`{cpu: "1"}`, "Burstable"},
		"sidecars": {`{resources: {limits: {cpu: "2"}}, initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 300m}}}, {resources: {requests: {cpu: 400m}}}],
			containers: [{resources: {requests: {cpu: 500m}}}]}`, `{cpu: 800m}`, "Burstable"},
	} {
		var spec, want map[string]any
		for text, into := range map[string]*map[string]any{c.spec: &spec, c.requests: &want} {
			if err := yaml.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		wholePodRequests(map[string]any{"spec": spec}, vocabulary.K8s())
		whole, _ := spec["resources"].(map[string]any)
		if !reflect.DeepEqual(whole["requests"], any(want)) {
			t.Errorf("%s: requests %v, want %v", name, whole["requests"], want)
		}
		if got := Class(spec); got != c.class {
			t.Errorf("%s: %s, want %s", name, got, c.class)
		}
	}
}
