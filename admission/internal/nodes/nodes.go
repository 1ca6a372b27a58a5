// Package nodes keeps node agents to their own node: its Node, Lease and CSINode, its
// mirror pods, the status and eviction of the pods that run on it, and tokens for these
// pods; from release 1.36 on also its devices and certificates. Who is a node follows from the name and the groups of the user. It serves
// NodeRestriction under "Admission plugins" of the specification.
package nodes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Plugin restricts nodes. It reads pods and nodes as they are now.
type Plugin struct {
	Store      services.Reader
	Authz      services.Authz
	Vocabulary vocabulary.Vocabulary
	Release    release.Release
	Gates      featuregate.Gates
}

// Mutate changes nothing. It refuses with Forbidden (403) before others change the
// object, so that what they add is not held against the node.
func (p Plugin) Mutate(ctx context.Context, r *review.Review) error {
	name, is := r.User.Node()
	if !is || r.Operation == services.OperationConnect {
		return nil
	}
	if name == "" {
		return r.Forbid("could not determine node from user %q", r.User.Name)
	}
	switch r.Type() {
	case resource.GroupResource{Resource: "pods"}:
		return p.pod(ctx, r, name)
	case resource.GroupResource{Resource: "nodes"}:
		return p.node(r, name)
	case resource.GroupResource{Resource: "persistentvolumeclaims"}:
		return p.claimStatus(r, name)
	case resource.GroupResource{Resource: "serviceaccounts"}:
		return p.token(ctx, r, name)
	case resource.GroupResource{Group: p.Vocabulary.Group("coordination."), Resource: "leases"}:
		if own := p.Vocabulary.Namespace("node-lease"); r.Namespace != own {
			return r.Forbid("can only access leases in the %q system namespace", own)
		}
		return named(r, name, "can only access node lease with the same name as the requesting node")
	case resource.GroupResource{Group: p.Vocabulary.Group("storage."), Resource: "csinodes"}:
		return named(r, name, "can only access CSINode with the same name as the requesting node")
	}
	if p.later() {
		return p.added(ctx, r, name)
	}
	return nil
}

// named refuses objects with another name than the node's.
func named(r *review.Review, name, refusal string) error {
	actual := r.Name
	if r.Operation == services.OperationCreate {
		object, err := r.Decoded()
		if err != nil {
			return err
		}
		actual = tree.Text(object, "metadata", "name")
	}
	if actual != name {
		return r.Forbid("%s", refusal)
	}
	return nil
}

// token lets a node request tokens that are bound to pods that run on it.
func (p Plugin) token(ctx context.Context, r *review.Review, name string) error {
	if r.Operation != services.OperationCreate || r.Subresource != "token" {
		return nil
	}
	object, err := r.Current()
	if err != nil {
		return err
	}
	var request struct {
		Spec struct {
			BoundObjectRef struct {
				Kind       string `json:"kind"`
				APIVersion string `json:"apiVersion"`
				Name       string `json:"name"`
				UID        string `json:"uid"`
			} `json:"boundObjectRef"`
			Audiences []string `json:"audiences"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object, &request); err != nil {
		return services.BadRequest("the token request is not readable: %v", err)
	}
	switch bound := request.Spec.BoundObjectRef; {
	case bound.APIVersion != "v1" || bound.Kind != "Pod" || bound.Name == "":
		return r.Forbid("node requested token not bound to a pod")
	case bound.UID == "":
		return r.Forbid("node requested token with a pod binding without a uid")
	}
	bound := request.Spec.BoundObjectRef
	pod, err := p.stored(ctx, "pods", r.Namespace, bound.Name)
	switch {
	case err != nil:
		return err
	case bound.UID != pod.Metadata.UID:
		return r.Forbid("the UID in the bound object reference (%s) does not match the UID in record. "+
			"The object might have been deleted and then recreated", bound.UID)
	case pod.Spec.NodeName != name:
		return r.Forbid("node requested token bound to a pod scheduled on a different node")
	case p.Gates.On(featuregate.NodeAudiences):
		return p.audience(ctx, r, request.Spec.Audiences, pod)
	}
	return nil
}

// object is the part of a stored pod or node that decisions depend on.
type object struct {
	Metadata struct {
		Name        string            `json:"name"`
		UID         string            `json:"uid"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		NodeName           string           `json:"nodeName"`
		ServiceAccountName string           `json:"serviceAccountName"`
		Volumes            []map[string]any `json:"volumes"`
	} `json:"spec"`
}

// stored reads an object of the core group as it is now. The error of a missing one is
// NotFound.
func (p Plugin) stored(ctx context.Context, plural, namespace, name string) (object, error) {
	key := resource.Key{GroupResource: resource.GroupResource{Resource: plural}, Namespace: namespace, Name: name}
	stored, err := p.Store.Get(ctx, services.GetRequest{Key: key})
	if err != nil {
		return object{}, err
	}
	var o object
	if err := json.Unmarshal(stored.JSON, &o); err != nil {
		return o, fmt.Errorf("reading %s: %w", key, err)
	}
	return o, nil
}
