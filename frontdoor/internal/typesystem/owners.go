package typesystem

import (
	"slices"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// OwnerTypes returns the resource types that an object's ownerReferences name, each once.
// References to kinds that are not served are skipped.
func (e *Engine) OwnerTypes(object map[string]any) (types []services.OwnerType) {
	for _, reference := range tree.Objects(object, "metadata", "ownerReferences") {
		apiVersion, kind := tree.Text(reference, "apiVersion"), tree.Text(reference, "kind")
		if slices.ContainsFunc(types, func(t services.OwnerType) bool { return t.APIVersion == apiVersion && t.Kind == kind }) {
			continue
		}
		if t, ok := e.Types.ByAPIVersion(apiVersion, kind); ok {
			types = append(types, services.OwnerType{APIVersion: apiVersion, Kind: kind, Resource: t.Resource, Namespaced: t.Namespaced})
		}
	}
	return types
}
