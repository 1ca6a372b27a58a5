package features_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/features"
	"github.com/portico-platform/portico/services/release"
)

func TestGates(t *testing.T) {
	on := func(given map[string]string, gate string) bool {
		t.Helper()
		g, _, err := features.Parse(release.V121, given)
		if err != nil {
			t.Fatal(err)
		}
		return g.On(gate)
	}
	for _, c := range []struct {
		given map[string]string
		gate  string
		want  bool
	}{
		{nil, "SuspendJob", false},
		{nil, "ServerSideApply", true},
		{nil, "WatchBookmark", true},
		{map[string]string{"SuspendJob": "true"}, "SuspendJob", true},
		{map[string]string{"AllAlpha": "true"}, "SuspendJob", true},
		{map[string]string{"AllAlpha": "true", "SuspendJob": "false"}, "SuspendJob", false},
		{map[string]string{"AllBeta": "false"}, "ServerSideApply", false},
		{map[string]string{"AllBeta": "false", "ServerSideApply": "true"}, "ServerSideApply", true},
		{map[string]string{"AllBeta": "false"}, "WatchBookmark", true},
		{map[string]string{"AllAlpha": "true"}, "ServerSideApply", true},
	} {
		if got := on(c.given, c.gate); got != c.want {
			t.Errorf("%v: %s is %v", c.given, c.gate, got)
		}
	}
	for gate, value := range map[string]string{"NoSuchGate": "true", "WatchBookmark": "false", "SuspendJob": "perhaps", "AllBeta": ""} {
		if _, _, err := features.Parse(release.V121, map[string]string{gate: value}); err == nil || !strings.Contains(err.Error(), gate) {
			t.Errorf("%s=%s: %v", gate, value, err)
		}
	}
	for gate, warned := range map[string]int{"WatchBookmark": 1, "StreamingProxyRedirects": 1, "SuspendJob": 0} {
		if _, warnings, err := features.Parse(release.V121, map[string]string{gate: "true"}); err != nil || len(warnings) != warned {
			t.Errorf("%s: %q, %v", gate, warnings, err)
		}
	}
}

// TestReleases checks that the stage of a gate, its default and whether it exists follow
// from the release.
func TestReleases(t *testing.T) {
	parse := func(r release.Release, gate, value string) (features.Gates, []string, error) {
		return features.Parse(r, map[string]string{gate: value})
	}
	for _, c := range []struct {
		gate     string
		old, new bool
	}{
		{"SuspendJob", false, true},                                   // alpha, then GA and removed
		{"ServerSideApply", true, true},                               // beta, then GA and removed
		{"ServiceTopology", false, false},                             // alpha, then removed
		{"HPAScaleToZero", false, false},                              // alpha in both
		{"InPlacePodVerticalScaling", false, true},                    // does not exist, then GA
		{"CrossNamespaceVolumeDataSource", false, false},              // does not exist, then alpha
		{"AllowOverwriteTerminationGracePeriodSeconds", false, false}, // deprecated and off
	} {
		for r, want := range map[release.Release]bool{release.V121: c.old, release.V136: c.new} {
			g, _, err := features.Parse(r, nil)
			if err != nil || g.On(c.gate) != want {
				t.Errorf("%s at %s: %v, %v", c.gate, r, g.On(c.gate), err)
			}
		}
	}
	if _, _, err := parse(release.V136, "SuspendJob", "true"); err == nil || !strings.Contains(err.Error(), "unrecognized feature gate: SuspendJob") {
		t.Errorf("a removed gate: %v", err)
	}
	if _, _, err := parse(release.V121, "InPlacePodVerticalScaling", "true"); err == nil || !strings.Contains(err.Error(), "unrecognized") {
		t.Errorf("a future gate: %v", err)
	}
	if _, _, err := parse(release.V136, "AllowOverwriteTerminationGracePeriodSeconds", "true"); err == nil || !strings.Contains(err.Error(), "locked to false") {
		t.Errorf("a gate that is locked to off: %v", err)
	}
	if _, warnings, err := parse(release.V136, "DRAPrioritizedList", "false"); err != nil || len(warnings) != 1 {
		t.Errorf("a GA gate that can be turned off: %v, %v", warnings, err)
	}
	if g, _, err := parse(release.V136, "AllAlpha", "true"); err != nil || !g.On("HPAScaleToZero") || g.On("ServiceTopology") {
		t.Errorf("all alpha features: %v", err)
	}
}

// TestGeneratedFields checks that the gate of each generated field is a gate of the release.
func TestGeneratedFields(t *testing.T) {
	g, _, err := features.Parse(release.V136, map[string]string{"AllAlpha": "true", "AllBeta": "true"})
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
	g, _, err := features.Parse(release.V136, nil)
	if err != nil {
		t.Fatal(err)
	}
	object := decode(t, given)
	g.Drop(&catalogue.Type{Kind: "ResourceSlice"}, object, nil)
	got, _ := json.Marshal(object)
	if expected, _ := json.Marshal(decode(t, want)); string(got) != string(expected) {
		t.Errorf("got %s, want %s", got, expected)
	}
	pod := decode(t, `spec: {containers: [{lifecycle: {stopSignal: SIGUSR1}}, {lifecycle: {stopSignal: SIGUSR1, preStop: {}}}, {lifecycle: {}}]}`)
	g.Drop(&catalogue.Type{Kind: "Pod"}, pod, nil)
	if got, _ := json.Marshal(pod); string(got) != `{"spec":{"containers":[{},{"lifecycle":{"preStop":{}}},{"lifecycle":{}}]}}` {
		t.Errorf("stop signals: got %s", got)
	}
	node := decode(t, `spec: {configSource: {}, providerID: a}`)
	if g.Drop(&catalogue.Type{Kind: "Node"}, node, nil); len(node["spec"].(map[string]any)) != 1 {
		t.Errorf("a node keeps %v", node["spec"])
	}
	job := decode(t, `spec: {suspend: true}`)
	if g.Drop(&catalogue.Type{Kind: "Job"}, job, nil); job["spec"].(map[string]any)["suspend"] != true {
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
		features.Gates{}.Drop(&catalogue.Type{Kind: c.kind}, object, stored)
		got, _ := json.Marshal(object)
		if want, _ := json.Marshal(decode(t, c.want)); string(got) != string(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	custom := decode(t, `{spec: {suspend: true}}`)
	if (features.Gates{}).Drop(&catalogue.Type{Kind: "Job", Custom: true}, custom, nil); custom["spec"].(map[string]any)["suspend"] != true {
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
