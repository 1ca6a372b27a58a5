package writes

import (
	"context"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/races"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/repeats"
	"github.com/portico-platform/portico/services"
)

// fastPath saves most writes the read from etcd that precedes them, and saves repeated
// writes without an effect all steps but admission. The results are the same, for these
// reasons.
//
// Cached state. The first attempt uses the object from the store's mirror, which may be
// stale. Its result counts in two cases only. Either the compare-and-swap on that
// revision succeeded, so it was the newest. Or a read from etcd after the attempt finds
// that the revision is still the newest, so the result is the one that an attempt at the
// time of that read, between request and response, would have had. In all other cases the
// result is discarded, and the next attempt reads the newest state; if that read fails, the
// write fails. So no client gets an outdated Conflict, NotFound or success. An error that leaves the outcome unknown always
// counts: the store may have written the object, and another attempt could apply the
// write twice. A dry-run never swaps, and a Service claims addresses before it does:
// neither uses cached state.
//
// Repeated requests. The result of a write depends on the request, the user, the object
// and the types, and on admission. If a request with the same digest, on the same
// revision, with the same types, changed nothing before, and mutating admission did not
// change the object, then its result before admission is the same again. Mutating and
// validating admission are called with that object again, since their decisions may
// differ; if a mutation changes the object, all steps are taken.
type fastPath struct{ repeats.Outcomes }

// result is the result of an attempt.
type result struct {
	out stored
	err error
}

// mayUseCache reports whether the first attempt may use cached state.
func mayUseCache(w *writeRequest) bool {
	return w.req.Verb != "create" && w.admission.Asks() && !w.options.DryRun && w.req.Type.Key != serviceips.Services
}

// counts reports whether the result of an attempt is valid, see fastPath. It may read the
// object's newest revision from etcd, and returns the error of that read.
func (h *Handlers) counts(ctx context.Context, w *writeRequest, c *current, r result) (bool, error) {
	switch {
	case !c.cached || r.err == nil && r.out.swapped:
		return true, nil
	case races.Lost(r.err):
		return false, nil
	case r.err != nil && !refused(r.err):
		return true, nil
	}
	newest, err := h.Store.Get(ctx, services.GetRequest{Key: w.req.Key()})
	if services.IsReason(err, services.ReasonNotFound) {
		return !c.exists(), nil
	}
	return err == nil && newest.Revision == c.object.Revision, err
}

// changesNothing reports whether an earlier, equal request changed nothing, and admission
// allows it again without a change. content is what is stored then.
func (h *Handlers) changesNothing(ctx context.Context, w *writeRequest, c *current) (same bool, content services.Content, err error) {
	o, ok := h.fast.Recall(w.digest)
	if !ok || !c.exists() || w.options.DryRun || o.Revision != c.object.Revision || o.Engine != w.req.Engine {
		return false, content, nil
	}
	w.admission.Warn(o.Warned...)
	review, err := w.review(ctx, c, nil)
	if err != nil {
		return false, content, err
	}
	if changed, err := review.Mutate(ctx, admit.Object{JSON: o.Mutated, Owners: o.Owners}); err != nil || changed != nil {
		return false, content, err
	}
	err = review.Validate(ctx, admit.Object{JSON: o.Checked, Owners: o.Owners})
	return err == nil, o.Content, err
}

// remember caches the outcome of a request that changed nothing.
func (f *fastPath) remember(w *writeRequest, c *current, v validated, content services.Content) {
	if v.shown == nil || !w.admission.Asks() || len(v.json) > repeats.MaxBytes {
		return
	}
	checked, err := w.shown(v.admitted)
	if err != nil {
		return
	}
	f.Remember(w.digest, repeats.Outcome{Revision: c.object.Revision, Engine: w.req.Engine, Content: content, Mutated: v.shown,
		Checked: checked.JSON, Owners: checked.Owners, Warned: v.warned})
}

// digestOf returns the digest of everything that determines the result of a request,
// except the stored object, the types and admission.
func digestOf(w *writeRequest) repeats.Digest {
	r := w.req
	return repeats.DigestOf(w.raw, r.Verb, r.Key().Path(), r.Type.APIVersion(), r.SubresourceName(), w.mediaType, r.URL.RawQuery, w.fieldManager(), r.User.Name)
}
