package labelkeys

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// TestMerged: the values of a new pod's labels are added to the selectors that name their keys.
func TestMerged(t *testing.T) {
	const keys = `topologyKey: t, labelSelector: {matchLabels: {x: y}}, matchLabelKeys: [a, none], mismatchLabelKeys: [b]`
	const merged = `topologyKey: t, labelSelector: {matchLabels: {x: y}, matchExpressions: [{key: a, operator: In, values: [one]}, {key: b, operator: NotIn, values: [two]}]},
		matchLabelKeys: [a, none], mismatchLabelKeys: [b]`
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	pod := func(term string) string {
		return `{metadata: {labels: {a: one, b: two}}, spec: {affinity: {podAffinity: {` + required + `: [{` + term + `}]}, podAntiAffinity: {` + preferred + `: [{podAffinityTerm: {` + term + `}}]}},
			topologySpreadConstraints: [{` + term + `}]}}`
	}
	for name, c := range map[string]struct {
		given, want string
		off         bool
	}{
		"values":      {pod(keys), pod(merged), false},
		"no selector": {pod(`matchLabelKeys: [a]`), pod(`matchLabelKeys: [a]`), false},
		"no feature":  {pod(keys), pod(keys), true},
	} {
		got, want := parse(t, c.given), parse(t, c.want)
		mergeLabelKeys(kinds.Write{Feature: func(string) bool { return !c.off }}, got, nil)
		a, _ := json.Marshal(got)
		if b, _ := json.Marshal(want); string(a) != string(b) {
			t.Errorf("%s: %s, want %s", name, a, b)
		}
	}
}

func parse(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
