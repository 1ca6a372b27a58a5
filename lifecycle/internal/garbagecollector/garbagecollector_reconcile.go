package garbagecollector

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/lifecycle/internal/sightings"
	"github.com/portico-platform/portico/services/kit/worker"
)

// reconcile processes the deletion finalizers of an object that is being deleted, and
// collects an object whose owners are gone.
func (c *Controller) reconcile(ctx context.Context, uid types.UID) (time.Duration, error) {
	o := c.graph.get(uid)
	switch {
	case o == nil:
		return 0, nil
	case o.deleting() && (o.orphans || o.foreground):
		return c.finish(ctx, o)
	case o.deleting() || len(o.owners) == 0:
		return 0, nil
	}
	return c.collect(ctx, o)
}

// finish orphans the dependents of an object that is being deleted, or waits for their
// deletion, as its finalizers require, and then removes the finalizer.
func (c *Controller) finish(ctx context.Context, o *object) (time.Duration, error) {
	if !o.orphans && c.graph.blocked(o.uid) {
		return 0, nil // the last dependent to go triggers this again
	}
	// Watches of different types are not in sync: dependents may still be unknown.
	if left := o.seen.Add(sightings.Settle).Sub(c.Clock.Now()); left > 0 {
		return left, nil
	}
	if !c.Complete() {
		return 0, worker.ErrLater
	}
	if !o.orphans {
		return 0, c.removeFinalizer(ctx, o, metav1.FinalizerDeleteDependents)
	}
	var group errgroup.Group
	group.SetLimit(releasesAtOnce)
	for _, dependent := range c.graph.dependentsOf(o.uid) {
		group.Go(func() error {
			return c.release(ctx, dependent, func(r metav1.OwnerReference) bool { return r.UID == o.uid })
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return 0, c.removeFinalizer(ctx, o, metav1.FinalizerOrphanDependents)
}

// collect deletes an object whose owners are all gone, or removes its references to
// those that are. It returns the time until it has to be called again, 0 for never.
func (c *Controller) collect(ctx context.Context, o *object) (time.Duration, error) {
	verdict, err := c.examineOwners(ctx, o, o.owners)
	if err != nil || verdict.holds() {
		return verdict.again(err)
	}
	live, err := c.read(ctx, o)
	if live == nil || err != nil || live.GetDeletionTimestamp() != nil {
		return 0, err
	}
	if verdict, err = c.examineOwners(ctx, o, live.GetOwnerReferences()); err != nil || verdict.holds() {
		return verdict.again(err)
	}
	return 0, c.change(ctx, o, live, verdict)
}

// change deletes an object that was read, or removes its references to owners that are gone.
func (c *Controller) change(ctx context.Context, o *object, live *unstructured.Unstructured, verdict verdict) error {
	if len(verdict.solid) > 0 {
		return c.releaseFrom(ctx, o, live, func(r metav1.OwnerReference) bool { return verdict.solid[r.UID] == nil })
	}
	policy := metav1.DeletePropagationBackground
	if verdict.waiting {
		// The owner is deleted last, and so is this object after its own dependents.
		var err error
		if policy, err = c.policyBelow(ctx, o, live); err != nil {
			return err
		}
	}
	return c.delete(ctx, o, live, policy)
}

// policyBelow returns the deletion policy for a dependent of an owner that waits for
// it. In a cycle of objects that wait for each other, this one stops blocking.
func (c *Controller) policyBelow(ctx context.Context, o *object, live *unstructured.Unstructured) (metav1.DeletionPropagation, error) {
	dependents := c.graph.dependentsOf(o.uid)
	if len(dependents) == 0 {
		return metav1.DeletePropagationBackground, nil
	}
	for _, dependent := range dependents {
		if dependent.waitsForDependents() {
			return metav1.DeletePropagationForeground, c.unblock(ctx, o, live)
		}
	}
	return metav1.DeletePropagationForeground, nil
}

// verdict is the state of all owners of an object.
type verdict struct {
	owners int
	// solid are the owners that stay; waiting is true if another one waits for its
	// dependents.
	solid   map[types.UID]*metav1.OwnerReference
	waiting bool
	// unseen is true if an owner stays that the graph does not have yet, and so will not report as
	// gone; unfollowed if it never will, because its type cannot be watched.
	unseen, unfollowed bool
}

// holds reports whether all owners stay, so that the object is not changed.
func (v verdict) holds() bool { return v.owners == len(v.solid) }

// unfollowedAfter is how long the deletion of an owner may be unknown whose type cannot be watched.
const unfollowedAfter = 5 * time.Minute

// again returns when the owners have to be examined again although nothing is reported about them.
func (v verdict) again(err error) (time.Duration, error) {
	switch {
	case err != nil:
		return 0, err
	case v.unseen:
		return 0, worker.ErrLater
	case v.unfollowed:
		return unfollowedAfter, nil
	}
	return 0, nil
}

// examineOwners looks up the owners of an object in the graph, and confirms absent ones with
// the API.
func (c *Controller) examineOwners(ctx context.Context, o *object, owners []metav1.OwnerReference) (verdict, error) {
	v := verdict{owners: len(owners), solid: map[types.UID]*metav1.OwnerReference{}}
	for i := range owners {
		state, err := c.ownerState(ctx, o, owners[i])
		if err != nil {
			return v, err
		}
		switch state {
		case ownerPresent:
			v.solid[owners[i].UID] = &owners[i]
		case ownerUnseen:
			v.solid[owners[i].UID] = &owners[i]
			v.unseen = true
		case ownerUnfollowed:
			v.solid[owners[i].UID] = &owners[i]
			v.unfollowed = true
		case ownerWaiting:
			v.waiting = true
		}
	}
	return v, nil
}

// read returns the current state of an object; nil if it is gone.
func (c *Controller) read(ctx context.Context, o *object) (*unstructured.Unstructured, error) {
	live, err := c.at(o).Get(ctx, o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != o.uid {
		return nil, nil
	}
	return live, err
}
