package published

import "testing"

// TestFleeting: what is a pointer in the published types says something when it is
// zero, and what every object has is kept.
func TestFleeting(t *testing.T) {
	for _, c := range []struct {
		definition, field string
		want              bool
	}{
		{"core.v1.PodSpec", "hostNetwork", true},
		{"core.v1.PodSpec", "nodeName", true},
		{"core.v1.PodSpec", "terminationGracePeriodSeconds", false},
		{"core.v1.PodSpec", "enableServiceLinks", false},
		{"core.v1.Container", "name", false},
		{"core.v1.EphemeralContainer", "imagePullPolicy", true}, // in line
		{"core.v1.ContainerStatus", "restartCount", false},
		{"apps.v1.DeploymentSpec", "replicas", false},
		{"apps.v1.DeploymentSpec", "paused", true},
		{"meta.v1.ObjectMeta", "generateName", true},
	} {
		if got := Fleeting()[c.definition][c.field]; got != c.want {
			t.Errorf("%s.%s: got %v, want %v", c.definition, c.field, got, c.want)
		}
	}
}
