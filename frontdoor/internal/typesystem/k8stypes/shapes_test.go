package k8stypes

import "testing"

// TestOmitEmpty: zero is a value of pointers in the published types, and fields without
// omitempty are kept.
func TestOmitEmpty(t *testing.T) {
	for _, c := range []struct {
		definition, field string
		want              bool
	}{
		{"core.v1.PodSpec", "hostNetwork", true},
		{"core.v1.PodSpec", "nodeName", true},
		{"core.v1.PodSpec", "terminationGracePeriodSeconds", false},
		{"core.v1.PodSpec", "enableServiceLinks", false},
		{"core.v1.Container", "name", false},
		{"core.v1.EphemeralContainer", "imagePullPolicy", true}, // inlined
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

// TestStructs: structs are always present; pointers, and structs with their own JSON
// encoding, are not.
func TestStructs(t *testing.T) {
	for _, c := range []struct {
		definition, field string
		want              bool
	}{
		{"apps.v1.Deployment", "spec", true},
		{"apps.v1.DeploymentSpec", "selector", false},
		{"core.v1.Container", "resources", true},
		{"core.v1.EphemeralContainer", "resources", true}, // inlined
		{"core.v1.PodSpec", "securityContext", false},
		{"meta.v1.ObjectMeta", "creationTimestamp", false},
	} {
		if got := Shapes()[c.definition].Structs[c.field]; got != c.want {
			t.Errorf("%s.%s: got %v, want %v", c.definition, c.field, got, c.want)
		}
	}
}
