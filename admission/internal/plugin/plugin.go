// Package plugin holds the admission plugins, one small file each, and the table
// that orders them. A plugin changes or refuses one request by looking at it and
// at what is stored; it never writes anything, so that every plugin is good for a
// dry run. It serves section "Admission plugins" of the specification.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Plugin is one row of the table. A plugin whose functions are both nil admits
// everything.
type Plugin struct {
	Name string
	// Default says whether it is on unless a flag turns it off.
	Default bool
	// Always marks a part of the API's own rules, which no flag names.
	Always bool
	// Waiting marks a plugin whose work is not in yet.
	Waiting bool
	// Mutate may change the object of the review.
	Mutate func(ctx context.Context, r *Review) error
	// Validate may only refuse.
	Validate func(ctx context.Context, r *Review) error
}

// Review is one request on its way through the chain.
type Review struct {
	services.AdmissionRequest
	object  map[string]any
	changed bool
}

// Is tells whether the review is about an operation on a resource type itself or
// on one of its subresources, as in "pods" and "pods/exec".
func (r *Review) Is(operation services.Operation, group, path string) bool {
	if r.Operation != operation || r.Group != group {
		return false
	}
	if r.Subresource == "" {
		return path == r.Resource
	}
	return path == r.Resource+"/"+r.Subresource
}

// Type is the resource type that the review is about.
func (r *Review) Type() resource.GroupResource {
	return resource.GroupResource{Group: r.Group, Resource: r.Resource}
}

// Decoded returns the object as a plugin may change it; it says so with Changed.
func (r *Review) Decoded() (map[string]any, error) {
	if r.object == nil {
		decoder := json.NewDecoder(bytes.NewReader(r.Object))
		decoder.UseNumber() // so that whole numbers stay exact
		if err := decoder.Decode(&r.object); err != nil {
			return nil, services.BadRequest("the object is not JSON: %v", err)
		}
	}
	return r.object, nil
}

// Changed notes that a plugin has changed what Decoded returned.
func (r *Review) Changed() { r.changed = true }

// Encoded returns the changed object, or nil when no plugin changed it.
func (r *Review) Encoded() ([]byte, error) {
	if !r.changed {
		return nil, nil
	}
	encoded, err := json.Marshal(r.object)
	if err != nil {
		return nil, fmt.Errorf("encoding the admitted object: %w", err)
	}
	return encoded, nil
}

// Forbid refuses the request as a plugin does: with a 403 about its object.
func (r *Review) Forbid(format string, args ...any) *services.Status {
	return services.Forbidden(r.Group, r.Resource, r.Name, fmt.Sprintf(format, args...))
}
