package profiles

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestSeccomp(t *testing.T) {
	const pod, container = "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/a"
	for name, c := range map[string]struct{ given, want string }{
		"fields": {`{metadata: {}, spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, securityContext: {seccompProfile: {type: Localhost, localhostProfile: x/y}}}, {name: b}]}}`,
			`{metadata: {annotations: {` + pod + `: runtime/default, ` + container + `: localhost/x/y}}, spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, securityContext: {seccompProfile: {type: Localhost, localhostProfile: x/y}}}, {name: b}]}}`},
		"annotations": {`{metadata: {annotations: {` + pod + `: docker/default, ` + container + `: unconfined}}, spec: {initContainers: [{name: a}]}}`,
			`{metadata: {annotations: {` + pod + `: docker/default, ` + container + `: unconfined}}, spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}, initContainers: [{name: a, securityContext: {seccompProfile: {type: Unconfined}}}]}}`},
		"both": {`{metadata: {annotations: {` + pod + `: unconfined}}, spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}`,
			`{metadata: {annotations: {` + pod + `: unconfined}}, spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}`},
		"none": {`{metadata: {annotations: {` + pod + `: anything}}, spec: {containers: [{name: a}]}}`, `{metadata: {annotations: {` + pod + `: anything}}, spec: {containers: [{name: a}]}}`},
	} {
		var got, want map[string]any
		if err := yaml.Unmarshal([]byte(c.given), &got); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		syncSeccomp(kinds.Write{Vocabulary: vocabulary.K8s()}, got, nil)
		a, _ := json.Marshal(got)
		if b, _ := json.Marshal(want); string(a) != string(b) {
			t.Errorf("%s: %s, want %s", name, a, b)
		}
	}
	later := map[string]any{"spec": map[string]any{"securityContext": map[string]any{"seccompProfile": map[string]any{"type": "RuntimeDefault"}}}}
	if syncSeccomp(kinds.Write{Vocabulary: vocabulary.K8s(), Release: release.V136}, later, nil); later["metadata"] != nil {
		t.Errorf("later releases have annotations: %v", later)
	}
}
