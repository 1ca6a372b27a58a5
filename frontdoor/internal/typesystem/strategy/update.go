package strategy

import (
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// CreatesOnUpdate reports whether an update (PUT) creates an object that is missing.
// Release 1.21 does so for objects whose writers know all of them beforehand.
func CreatesOnUpdate(t *catalogue.Type) bool {
	return !t.Custom && slices.Contains([]string{"Endpoints", "Event", "LimitRange", "Lease", "RuntimeClass",
		"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}, t.Kind)
}

// NeedsVersion reports whether an update (PUT) has to name the version that it was
// made on. Of other objects, one without is taken for whatever version there is.
func NeedsVersion(t *catalogue.Type) bool {
	return t.Custom || slices.Contains([]string{"Lease", "RuntimeClass", "PodDisruptionBudget", "CSIDriver", "CSINode",
		"CSIStorageCapacity", "VolumeAttachment", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"CustomResourceDefinition", "APIService"}, t.Kind)
}

// keptWithStatus names the metadata that a write of the status does not change.
func keptWithStatus(t *catalogue.Type) []string {
	switch {
	case t.Custom || slices.Contains([]string{"FlowSchema", "PriorityLevelConfiguration", "VolumeAttachment",
		"CustomResourceDefinition", "APIService"}, t.Kind):
		return []string{"labels", "annotations", "finalizers", "ownerReferences"}
	case t.Kind == "Deployment":
		return []string{"labels"}
	case t.Kind == "Pod":
		return []string{"ownerReferences"}
	}
	return nil
}
