package nodes

import (
	"slices"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
)

// TestForbiddenLabels: a node may set its own labels, and all that are not the maker's.
func TestForbiddenLabels(t *testing.T) {
	for v, labels := range map[vocabulary.Vocabulary]map[string]bool{
		vocabulary.Platform(): {
			"team": false, "example.com/x": false, "platform.io/hostname": false, "beta.platform.io/arch": false, "topology.platform.io/zone": false,
			"failure-domain.beta.platform.io/region": false, "node.platform.io/instance-type": false, "beta.platform.io/instance-type": false,
			"nodeagent.platform.io/x": false, "a.node.platform.io/x": false, "notplatform.io/x": false, "kubernetes.io/x": false,
			"platform.io/role": true, "x.platform.io/hostname": true, "node-restriction.platform.io/x": true, "a.node-restriction.platform.io/hostname": true,
			"kubelet.platform.io/x": true, "mynode.platform.io/x": true,
		},
		vocabulary.K8s(): {
			"kubernetes.io/hostname": false, "kubelet.kubernetes.io/x": false, "node.kubernetes.io/x": false, "beta.kubernetes.io/os": false, "platform.io/x": false,
			"kubernetes.io/role": true, "node-restriction.kubernetes.io/x": true, "k8s.io/x": true, "storage.k8s.io/x": true, "nodeagent.kubernetes.io/x": true,
		},
	} {
		for label, want := range labels {
			if got := (Plugin{Vocabulary: v}).forbidden([]string{label}); slices.Contains(got, label) != want {
				t.Errorf("%s: %s is forbidden: %v", v.Name, label, !want)
			}
		}
	}
}
