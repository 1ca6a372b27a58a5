package features_test

import (
	"encoding/json"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/features"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/release"
)

// TestGeneratedFields checks that the gate of each generated field is a gate of the release.
func TestGeneratedFields(t *testing.T) {
	g, _, err := featuregate.Parse(release.V136, map[string]string{"AllAlpha": "true", "AllBeta": "true"})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("1.36.json")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil || len(fields) < 30 {
		t.Fatalf("%d gates, %v", len(fields), err)
	}
	for gate := range fields {
		if !g.On(gate) {
			t.Errorf("no gate %s, or off with all features", gate)
		}
	}
}

// TestDropLater drops the fields of features that are off in release 1.36.
func TestDropLater(t *testing.T) {
	given := `spec: {devices: [{name: a, nodeAllocatableResourceMappings: {cpu: {}}, capacity: {memory: {value: 1}}}]}`
	want := `spec: {devices: [{name: a, capacity: {memory: {value: 1}}}]}`
	g, _, err := featuregate.Parse(release.V136, nil)
	if err != nil {
		t.Fatal(err)
	}
	object := decode(t, given)
	features.Off(g).Drop(&catalogue.Type{Kind: "ResourceSlice"}, object, nil)
	got, _ := json.Marshal(object)
	if expected, _ := json.Marshal(decode(t, want)); string(got) != string(expected) {
		t.Errorf("got %s, want %s", got, expected)
	}
	pod := decode(t, `spec: {containers: [{lifecycle: {stopSignal: SIGUSR1}}, {lifecycle: {stopSignal: SIGUSR1, preStop: {}}}, {lifecycle: {}}]}`)
	features.Off(g).Drop(&catalogue.Type{Kind: "Pod"}, pod, nil)
	if got, _ := json.Marshal(pod); string(got) != `{"spec":{"containers":[{},{"lifecycle":{"preStop":{}}},{"lifecycle":{}}]}}` {
		t.Errorf("stop signals: got %s", got)
	}
	node := decode(t, `spec: {configSource: {}, providerID: a}`)
	if features.Off(g).Drop(&catalogue.Type{Kind: "Node"}, node, nil); len(node["spec"].(map[string]any)) != 1 {
		t.Errorf("a node keeps %v", node["spec"])
	}
	job := decode(t, `spec: {suspend: true}`)
	if features.Off(g).Drop(&catalogue.Type{Kind: "Job"}, job, nil); job["spec"].(map[string]any)["suspend"] != true {
		t.Error("a field is dropped whose feature is GA")
	}
}

func TestDrop(t *testing.T) {
	probe := `containers: [{name: a, livenessProbe: {periodSeconds: 1, terminationGracePeriodSeconds: 5}}, {name: b}]`
	without := `containers: [{name: a, livenessProbe: {periodSeconds: 1}}, {name: b}]`
	for name, c := range map[string]struct{ kind, given, stored, want string }{
		"new":             {"Job", `{spec: {suspend: true, parallelism: 1}}`, ``, `{spec: {parallelism: 1}}`},
		"changed":         {"Job", `{spec: {suspend: true}}`, `{spec: {}}`, `{spec: {}}`},
		"there already":   {"Job", `{spec: {suspend: true}}`, `{spec: {suspend: false}}`, `{spec: {suspend: true}}`},
		"in lists":        {"NetworkPolicy", `{spec: {egress: [{ports: [{port: 1, endPort: 2}, {port: 3}]}, {}]}}`, ``, `{spec: {egress: [{ports: [{port: 1}, {port: 3}]}, {}]}}`},
		"in a pod":        {"Pod", `{spec: {` + probe + `}}`, ``, `{spec: {` + without + `}}`},
		"in a template":   {"CronJob", `{spec: {jobTemplate: {spec: {template: {spec: {` + probe + `}}}}}}`, ``, `{spec: {jobTemplate: {spec: {template: {spec: {` + without + `}}}}}}`},
		"ephemeral":       {"Pod", `{spec: {ephemeralContainers: [{name: a}], nodeName: n}}`, ``, `{spec: {nodeName: n}}`},
		"a metric":        {"HorizontalPodAutoscaler", `{spec: {metrics: [{type: ContainerResource, containerResource: {name: cpu}}]}}`, ``, `{spec: {metrics: [{type: ContainerResource}]}}`},
		"of a status":     {"Service", `{status: {conditions: [], loadBalancer: {ingress: [{ip: a, ports: []}]}}}`, ``, `{status: {loadBalancer: {ingress: [{ip: a}]}}}`},
		"of another kind": {"CronJob", `{spec: {suspend: true}}`, ``, `{spec: {suspend: true}}`},
		"nothing there":   {"EndpointSlice", `{endpoints: null}`, ``, `{endpoints: null}`},
		"beta":            {"Job", `{spec: {ttlSecondsAfterFinished: 5}}`, ``, `{spec: {ttlSecondsAfterFinished: 5}}`},
	} {
		object, stored := decode(t, c.given), decode(t, c.stored)
		features.Off(featuregate.Gates{}).Drop(&catalogue.Type{Kind: c.kind}, object, stored)
		got, _ := json.Marshal(object)
		if want, _ := json.Marshal(decode(t, c.want)); string(got) != string(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	custom := decode(t, `{spec: {suspend: true}}`)
	if features.Off(featuregate.Gates{}).Drop(&catalogue.Type{Kind: "Job", Custom: true}, custom, nil); custom["spec"].(map[string]any)["suspend"] != true {
		t.Error("a custom type has lost a field")
	}
}

func decode(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
