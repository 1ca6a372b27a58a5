package k8stypes

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
		if got := Shapes()[c.definition].OmitEmpty[c.field]; got != c.want {
			t.Errorf("%s.%s: got %v, want %v", c.definition, c.field, got, c.want)
		}
	}
}

// TestStanding: structs are there in any case, what is a pointer and what JSON shows as
// something else is not.
func TestStanding(t *testing.T) {
	for _, c := range []struct {
		definition, field string
		want              bool
	}{
		{"apps.v1.Deployment", "spec", true},
		{"apps.v1.DeploymentSpec", "selector", false},
		{"core.v1.Container", "resources", true},
		{"core.v1.EphemeralContainer", "resources", true}, // in line
		{"core.v1.PodSpec", "securityContext", false},
		{"meta.v1.ObjectMeta", "creationTimestamp", false},
	} {
		if got := Shapes()[c.definition].Structs[c.field]; got != c.want {
			t.Errorf("%s.%s: got %v, want %v", c.definition, c.field, got, c.want)
		}
	}
}
