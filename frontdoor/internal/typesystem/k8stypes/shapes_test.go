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
		{"admissionregistration.v1.WebhookClientConfig", "caBundle", true},
		{"certificates.v1.CertificateSigningRequestSpec", "request", false},
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

// TestShown: what a typed client writes as null when it has nothing.
func TestShown(t *testing.T) {
	for _, c := range []struct {
		definition, field string
		want              bool
	}{
		{"core.v1.PodCondition", "lastTransitionTime", true},
		{"core.v1.ContainerStateTerminated", "finishedAt", true},
		{"core.v1.Event", "eventTime", true},
		{"discovery.v1.EndpointSlice", "ports", true},
		{"storage.v1.CSINodeDriver", "topologyKeys", true},
		{"core.v1.TypedLocalObjectReference", "apiGroup", true},
		{"core.v1.PodSpec", "volumes", false},
		{"apps.v1.DeploymentSpec", "selector", false}, // an object
		{"meta.v1.ObjectMeta", "creationTimestamp", true},
		{"meta.v1.ObjectMeta", "deletionTimestamp", false}, // a pointer
	} {
		if got := Shapes()[c.definition].Null[c.field]; got != c.want {
			t.Errorf("%s.%s: got %v, want %v", c.definition, c.field, got, c.want)
		}
	}
}

// TestStated: an empty text is a value where the published type has a pointer to one.
func TestStated(t *testing.T) {
	for _, c := range []struct {
		definition, field string
		want              bool
	}{
		{"core.v1.PersistentVolumeSpec", "volumeMode", true},
		{"core.v1.ServicePort", "appProtocol", true},
		{"apps.v1.RollingUpdateDeployment", "maxSurge", true},
		{"core.v1.ServicePort", "targetPort", false},
		{"core.v1.ServicePort", "protocol", false},
		{"core.v1.PodSpec", "terminationGracePeriodSeconds", false},
	} {
		if got := Shapes()[c.definition].Stated[c.field]; got != c.want {
			t.Errorf("%s.%s: got %v, want %v", c.definition, c.field, got, c.want)
		}
	}
}
