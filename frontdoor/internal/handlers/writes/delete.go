package writes

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/races"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/repairs"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// deletion is the state of a delete request.
type deletion struct {
	*request.Request
	options *metav1.DeleteOptions
	dryRun  bool
	now     time.Time
	// admission is exempt for deletions that the front door makes itself.
	admission *admit.Call
	// nameless is true for the objects of a collection: the request names none.
	nameless bool
}

// Delete serves the deletion of one object (section "Two-phase deletion of a
// resource"): an object with finalizers or a grace period is marked as deleted, any other
// one is removed.
func (h *Handlers) Delete(w http.ResponseWriter, r *request.Request) error {
	x, err := h.readDeletion(w, r)
	if err != nil {
		return err
	}
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.Object)
	if err != nil {
		return err
	}
	if err := strategy.CheckDeletable(r.Type, r.Name); err != nil {
		return err
	}
	object, removed, err := h.remove(r.Context(), x, r.Key())
	x.admission.SendNotes(w.Header())
	if err != nil {
		return err
	}
	status := http.StatusOK
	if orphan := x.options.OrphanDependents; !removed && orphan != nil && !*orphan { //nolint:staticcheck // clients of 1.21 still send it
		status = http.StatusAccepted // as in Kubernetes for this option alone
	}
	if !removed || r.Type.Behavior.ReturnDeleted {
		return applied(reads.Reply{Object: object, Form: form, Status: status}.Send(w, r, h.Codec))
	}
	h.Codec.WriteStatus(w, r.Request, &services.Status{Code: http.StatusOK,
		Details: &services.StatusDetails{Name: r.Name, Group: r.Type.Group, Kind: r.Type.Resource, UID: object.UID}})
	return nil
}

// DeleteCollection deletes the objects that a list with the same parameters returns, each in a separate
// deletion, and returns them as listed. Objects that others delete in the meantime are skipped. It holds
// at most one page of them: if there are more, they are read again for the response.
func (h *Handlers) DeleteCollection(w http.ResponseWriter, r *request.Request) error {
	x, err := h.readDeletion(w, r)
	if err != nil {
		return err
	}
	x.nameless = true
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.List)
	if err != nil {
		return err
	}
	list, err := h.Reads.Open(r)
	if err != nil {
		return err
	}
	err = h.removeEach(r.Context(), x, list)
	x.admission.SendNotes(w.Header())
	if err != nil {
		return err
	}
	if list, err = list.Again(r.Context()); err != nil {
		return err
	}
	return h.Reads.Send(w, r, form, list)
}

// removeEach deletes the objects of a list concurrently.
func (h *Handlers) removeEach(ctx context.Context, x *deletion, list *reads.Listing) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(removals)
	err := list.Pages(ctx, func(page []services.Object) error {
		for i := range page {
			key := page[i].Key
			group.Go(func() error {
				_, _, err := h.remove(ctx, x, key)
				if services.IsReason(err, services.ReasonNotFound) {
					return nil
				}
				return err
			})
		}
		return ctx.Err()
	})
	return cmp.Or(group.Wait(), err)
}

// removals is how many objects of a collection are deleted concurrently: enough for etcd
// to commit several with one fsync.
const removals = 16

// readDeletion reads the options from the body or, if there is none, from the query
// parameters. The query parameter dryRun is valid with a body too.
func (h *Handlers) readDeletion(w http.ResponseWriter, r *request.Request) (*deletion, error) {
	body, err := r.ReadBody(w)
	if err != nil {
		return nil, err
	}
	x := &deletion{Request: r, now: time.Now()}
	if x.options, err = h.Codec.DeleteOptions(r.Header.Get("Content-Type"), body, r.Charge); err != nil {
		return nil, err
	}
	if len(body) == 0 {
		if err := request.QueryDeleteOptions(r.Query, x.options); err != nil {
			return nil, err
		}
	}
	x.options.DryRun = append(x.options.DryRun, r.Query["dryRun"]...)
	x.dryRun = request.DryRun(x.options.DryRun)
	x.admission = admit.Delete(h.Admission, r, x.options)
	x.admission.Warn(strategy.OrphanWarnings(r.Type, x.options, r.Engine.Types.Release())...)
	return x, r.CheckDeleteOptions(x.options)
}

// remove deletes an object or marks it as deleted; removed reports which. It retries after
// conflicts with other writers. A precondition on the resourceVersion then fails.
func (h *Handlers) remove(ctx context.Context, x *deletion, key resource.Key) (object services.Object, removed bool, err error) {
	err = services.RetryLost(ctx, races.Lost, func() error {
		object, removed, err = h.removeOnce(ctx, x, key)
		return err
	})
	return object, removed, err
}

func (h *Handlers) removeOnce(ctx context.Context, x *deletion, key resource.Key) (services.Object, bool, error) {
	current, err := h.Store.Get(ctx, services.GetRequest{Key: key})
	if services.IsReason(err, services.ReasonUnreadable) {
		gone, err := h.repairer().Remove(ctx, repairs.Removal{Request: x.Request, Options: x.options, DryRun: x.dryRun, Nameless: x.nameless}, key, err)
		return gone, err == nil, err
	}
	if err != nil {
		return current, false, err
	}
	if err := strategy.CheckPreconditions(x.Type, x.options.Preconditions, current); err != nil {
		return current, false, err
	}
	if x.admission.Asks() {
		if err := x.admit(ctx, current); err != nil {
			return current, false, err
		}
	}
	live, err := x.Engine.DecodeStored(ctx, current, x.Type.Stored)
	if err != nil {
		return current, false, err
	}
	next := typesystem.Copy(live)
	s := x.Engine.Strategy(x.Type)
	s.Namespace, s.User, s.Now = key.Namespace, x.User, x.now
	s.PrepareDelete(next, x.options)
	switch {
	case strategy.Finished(x.Type, next) && x.dryRun:
		current, err = x.ended(ctx, current, next)
		return current, true, err
	case strategy.Finished(x.Type, next):
		gone, err := h.erase(ctx, current, live)
		if err == nil {
			gone, err = x.ended(ctx, gone, next)
		}
		return gone, err == nil, races.Mark(err)
	}
	return h.markDeleted(ctx, x, current, next)
}

// ended returns what is shown of an object that is gone: one that could have had time to
// end by itself shows when it was deleted.
func (x *deletion) ended(ctx context.Context, gone services.Object, marked map[string]any) (services.Object, error) {
	if x.Type.Behavior.GracePeriod == "" {
		return gone, nil
	}
	content, err := x.Engine.Content(ctx, marked, nil, x.Type.Stored)
	gone.JSON, gone.UID = tree.WithResourceVersion(content.JSON, gone.Revision), "" // it is not what was stored
	return gone, err
}

// markDeleted stores the object with its deletion requested.
func (h *Handlers) markDeleted(ctx context.Context, x *deletion, current services.Object, next map[string]any) (services.Object, bool, error) {
	content, err := x.Engine.Content(ctx, next, nil, x.Type.Stored)
	if err != nil {
		return current, false, err
	}
	if tree.IsVersion(current.JSON, content.JSON, current.Revision) { // already marked
		return current, false, nil
	}
	if x.dryRun {
		current.JSON, current.UID = tree.WithResourceVersion(content.JSON, current.Revision), "" // it is not what is stored
		return current, false, nil
	}
	updated, err := h.Store.Update(ctx, services.UpdateRequest{Key: current.Key, Revision: current.Revision, Content: content})
	return updated, false, races.Mark(err)
}

// admit runs mutating and validating admission. Mutations of a deleted object have no
// effect.
func (x *deletion) admit(ctx context.Context, current services.Object) error {
	old, err := x.Engine.View(ctx, current, x.Type)
	if err != nil {
		return err
	}
	subject := admit.Subject{Operation: services.OperationDelete, Type: x.Type,
		Namespace: current.Key.Namespace, Name: current.Key.Name, Old: old.JSON}
	if x.nameless {
		subject.Name = ""
	}
	review := x.admission.Review(subject)
	if _, err := review.Both(ctx, admit.Object{}); err != nil {
		return err
	}
	return review.Validate(ctx, admit.Object{})
}
