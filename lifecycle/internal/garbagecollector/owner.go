package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/services/kit/worker"
)

// ownerState is the state of an owner with respect to its dependents.
type ownerState int

const (
	ownerAbsent ownerState = iota
	ownerPresent
	ownerWaiting    // deleted in the foreground: after its dependents
	ownerUnseen     // present, but not in the graph yet
	ownerUnfollowed // present, and never in the graph
)

// reference is an owner as named by a dependent in a namespace. Once it is dangling it
// stays so, because uids are not reused.
type reference struct {
	namespace, apiVersion, kind, name string
	uid                               types.UID
}

// ownerState returns the state of an owner. Only the API can confirm that an owner is
// absent.
func (c *Controller) ownerState(ctx context.Context, o *object, r metav1.OwnerReference) (ownerState, error) {
	if owner := c.graph.get(r.UID); owner != nil && owner.is(r, o.namespace) {
		if owner.waitsForDependents() {
			return ownerWaiting, nil
		}
		return ownerPresent, nil
	}
	key := reference{o.namespace, r.APIVersion, r.Kind, r.Name, r.UID}
	if _, known := c.absent.Get(key); known {
		return ownerAbsent, nil
	}
	state, err := c.readOwner(ctx, o, r)
	if err == nil && state == ownerAbsent {
		c.absent.Add(key, nil)
		if elsewhere := c.graph.get(r.UID); elsewhere != nil && elsewhere.namespace != o.namespace {
			c.warn(ctx, o, r)
		}
	}
	return state, err
}

// readOwner reads an owner in the namespace of the dependent, or cluster-wide if its kind
// is cluster-scoped. An owner in another namespace counts as absent. A cluster-scoped
// dependent cannot have a namespaced owner; since the reference is ambiguous, the dependent
// is kept.
func (c *Controller) readOwner(ctx context.Context, o *object, r metav1.OwnerReference) (ownerState, error) {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return ownerPresent, fmt.Errorf("owner %s %q: %w", r.Kind, r.Name, err)
	}
	kind := c.served.Load().Kind(gv.WithKind(r.Kind))
	if kind == nil {
		c.Log.Debug("owner has a kind that is not served", "controller", Name, "kind", gv.WithKind(r.Kind), "name", r.Name)
		return ownerPresent, worker.ErrLater
	}
	namespace := o.namespace
	if !kind.Namespaced {
		namespace = ""
	} else if namespace == "" {
		c.warn(ctx, o, r)
		return ownerPresent, nil
	}
	owner, err := c.Metadata.Resource(kind.GroupVersionResource).Namespace(namespace).Get(ctx, r.Name, metav1.GetOptions{})
	switch {
	case noSuchObject(err):
		return ownerAbsent, nil
	case err != nil:
		return ownerPresent, fmt.Errorf("owner %s %q: %w", r.Kind, r.Name, err)
	case owner.GetUID() != r.UID:
		return ownerAbsent, nil
	case owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return ownerWaiting, nil
	case c.graph.get(r.UID) != nil:
		return ownerPresent, nil
	case !c.follows(kind.GroupResource()):
		return ownerUnfollowed, nil
	}
	return ownerUnseen, nil
}

// follows reports whether the graph gets the objects of a type.
func (c *Controller) follows(kind schema.GroupResource) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.monitors[kind] != nil
}

// noSuchObject reports whether the API confirms that the object is absent. An absent
// type says nothing about its objects.
func noSuchObject(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != "" && !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
