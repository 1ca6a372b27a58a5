package plugin

import (
	"slices"

	"github.com/portico-platform/portico/admission/internal/review"
)

// about concerns all requests for resources of a group and for their subresources.
func about(group string, resources ...string) func(*review.Review) bool {
	return func(r *review.Review) bool { return r.Group == group && slices.Contains(resources, r.Resource) }
}

// inGroup concerns all requests for resources of a group.
func inGroup(group string) func(*review.Review) bool {
	return func(r *review.Review) bool { return r.Group == group }
}

// none concerns no request: the plugin does nothing that others do not cause.
func none(*review.Review) bool { return false }

// either concerns what one of two does.
func either(a, b func(*review.Review) bool) func(*review.Review) bool {
	return func(r *review.Review) bool { return a(r) || b(r) }
}
