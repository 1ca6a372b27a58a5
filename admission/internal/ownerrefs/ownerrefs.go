// Package ownerrefs prevents users from deleting objects, or blocking their deletion,
// through the garbage collector without permission. A change of ownerReferences requires
// the verb delete on the object, because the collector may then delete it. Setting
// blockOwnerDeletion requires the verb update on the finalizers subresource of the owner,
// because it delays the owner's deletion. It implements
// OwnerReferencesPermissionEnforcement under "Admission plugins" of the specification.
package ownerrefs

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// Plugin checks ownerReferences.
type Plugin struct{ Authz services.Authz }

// Validate returns Forbidden (403) if the user lacks a permission.
func (p Plugin) Validate(ctx context.Context, r *review.Review) error {
	if r.Operation != services.OperationCreate && r.Operation != services.OperationUpdate {
		return nil
	}
	if r.Group == "" && r.Resource == "pods" && r.Subresource == "status" {
		return nil // a status update does not change ownerReferences, and node agents send wrong ones
	}
	owners, err := ownersIn(r.Object)
	if err != nil {
		return err
	}
	before, err := ownersIn(r.OldObject)
	if err != nil || equality.Semantic.DeepEqual(owners, before) {
		return err
	}
	if r.Operation == services.OperationUpdate {
		decision, err := p.Authz.Authorize(ctx, services.Attributes{User: r.User, Verb: "delete", Group: r.Group, Version: r.Version, Resource: r.Resource,
			Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name})
		if err != nil {
			return err
		}
		if !decision.Allowed {
			// The end is what release 1.21 answers when there is no error.
			return r.Forbid("cannot set an ownerRef on a resource you can't delete: %s, <nil>", decision.Reason)
		}
	}
	blocked := newlyBlocked(owners, before)
	if len(blocked) == 0 {
		return nil
	}
	// Who may finalize anything need not be asked about each owner, or about owners of
	// unknown types.
	anything, err := p.Authz.Authorize(ctx, services.Attributes{User: r.User, Verb: "update", Group: "*", Version: "*", Resource: "*", Subresource: "finalizers", Name: "*"})
	if err != nil || anything.Allowed {
		return err
	}
	for _, owner := range blocked {
		if err := p.checkBlocked(ctx, r, owner); err != nil {
			return err
		}
	}
	return nil
}

// checkBlocked checks that the user may set finalizers on an owner.
func (p Plugin) checkBlocked(ctx context.Context, r *review.Review, owner metav1.OwnerReference) error {
	i := slices.IndexFunc(r.OwnerTypes, func(t services.OwnerType) bool { return t.APIVersion == owner.APIVersion && t.Kind == owner.Kind })
	version, err := runtimeschema.ParseGroupVersion(owner.APIVersion)
	if i < 0 || err != nil {
		return r.Forbid("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: no matches for kind %q in version %q",
			owner.APIVersion, owner.Kind, owner.Kind, owner.APIVersion)
	}
	question := services.Attributes{User: r.User, Verb: "update", Group: version.Group, Version: version.Version,
		Resource: r.OwnerTypes[i].Resource, Subresource: "finalizers", Name: owner.Name}
	if r.OwnerTypes[i].Namespaced {
		question.Namespace = r.Namespace
	}
	decision, err := p.Authz.Authorize(ctx, question)
	if err != nil {
		return err
	}
	if !decision.Allowed {
		return r.Forbid("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %s, <nil>", decision.Reason)
	}
	return nil
}

// newlyBlocked returns the owners whose deletion the new references block and the old ones
// did not.
func newlyBlocked(owners, before []metav1.OwnerReference) (blocked []metav1.OwnerReference) {
	blocks := func(o metav1.OwnerReference) bool { return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion }
	was := map[string]bool{} // by uid
	for _, o := range before {
		was[string(o.UID)] = was[string(o.UID)] || blocks(o)
	}
	for _, o := range owners {
		if blocks(o) && !was[string(o.UID)] {
			blocked = append(blocked, o)
		}
	}
	return blocked
}

// ownersIn returns the ownerReferences of an object, nil if there is no object.
func ownersIn(object []byte) ([]metav1.OwnerReference, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var o struct {
		Metadata struct {
			OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, services.BadRequest("the object is not readable: %v", err)
	}
	return o.Metadata.OwnerReferences, nil
}
