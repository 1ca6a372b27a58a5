package fieldmanager

import (
	"testing"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestBlankFits: the blank object matches the schema of every kind; otherwise the library
// could not compare it.
func TestBlankFits(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		b := newBench(t, v)
		for _, g := range b.types.Groups() {
			for _, version := range g.Versions {
				for _, ty := range version.Types {
					known := b.of(ty)
					if known.fields == nil {
						continue
					}
					if _, err := b.Typed(known.blank); err != nil {
						t.Errorf("%s %s: %v", ty.APIVersion(), ty.Kind, err)
					}
				}
			}
		}
	}
}

// TestBlank checks the members that are always present, of a kind with a published Go type
// and of one without.
func TestBlank(t *testing.T) {
	b := newBench(t, vocabulary.Platform())
	for name, want := range map[string]string{
		"apps/v1/daemonsets":                 `{apiVersion: apps/v1, kind: DaemonSet, metadata: {creationTimestamp: null}, status: {currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0}, spec: {selector: null, updateStrategy: {}, template: {metadata: {creationTimestamp: null}, spec: {containers: null}}}}`,
		"policy/v1beta1/podsecuritypolicies": `{apiVersion: policy/v1beta1, kind: PodSecurityPolicy, metadata: {}, spec: {fsGroup: {}, runAsUser: {}, seLinux: {}, supplementalGroups: {}}}`,
	} {
		if got := b.of(b.lookup(t, name)).blank; !tree.Equal(got, decodeYAML(t, want)) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
