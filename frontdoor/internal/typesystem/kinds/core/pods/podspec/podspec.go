// Package podspec reads the specs of pods: it iterates over the containers of all three lists, so
// that no check leaves one out. It checks nothing. It serves "Resources and their fields" of the
// specification.
package podspec

import (
	"iter"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Place is where a container is in the spec of a pod.
type Place struct {
	List  string
	Index int
}

// In returns the path of the container. at is that of the spec.
func (p Place) In(at *field.Path) *field.Path { return at.Field(p.List).Item(p.Index) }

// Containers iterates over all containers of a pod: init containers, containers and ephemeral ones.
func Containers(spec map[string]any) iter.Seq2[Place, map[string]any] {
	return func(yield func(Place, map[string]any) bool) {
		for _, list := range [...]string{"initContainers", "containers", "ephemeralContainers"} {
			for i, container := range rules.Objects(spec, list) {
				if !yield(Place{list, i}, container) {
					return
				}
			}
		}
	}
}
