package writes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
)

// fastPath spares most writes two things: asking etcd for the newest state before, and
// all steps of a write that is known to change nothing. Clients cannot tell the
// difference, for these reasons.
//
// The state may be old. A first attempt begins with the state in the store's mirror. Its
// result counts in two cases only. Either the store has swapped exactly that revision,
// so it was the newest. Or a read from etcd after the decision finds that the revision is
// still the newest, so the decision is the one that would have been made at the time of
// that read, which lies between request and answer. In all other cases the attempt has
// not taken place, and the next one begins with the newest state. So no client gets a
// conflict, a NotFound or a success that is out of date. An error that is no refusal
// always counts: the store may have written the object, and another attempt could apply
// the write twice. A dry-run never swaps, and a Service claims addresses before it does: they
// begin with the newest state.
//
// The request may be known. What a request makes of an object depends on what it says,
// who sends it, the object and the types, but for the decisions of admission. A request
// with the same digest, on the same revision, with the same types, that changed nothing
// before and that mutating admission left alone, comes again to the object that
// admission was shown then. Admission is asked about that object again, by both halves,
// so that it may change its mind: when it changes the object, all steps are taken.
type fastPath struct {
	mu sync.Mutex
	of map[digest]outcome
}

const (
	// maxRemembered and maxRememberedBytes bound what is remembered, in number and in
	// bytes of an object.
	maxRemembered      = 1024
	maxRememberedBytes = 16 << 10
)

// digest identifies what a client has sent.
type digest [sha256.Size]byte

// outcome is the outcome of a request that changed nothing.
type outcome struct {
	revision         int64
	engine           *typesystem.Engine
	mutated, checked []byte // the objects that the two halves of admission were shown
	owners           []services.OwnerType
	warned           []string
}

// result is how an attempt has ended.
type result struct {
	out stored
	err error
}

// mayUseCache reports whether a first attempt may begin with a state that may be old.
func mayUseCache(w *writeRequest) bool {
	return w.req.Verb != "create" && w.admission.Asks() && !w.options.DryRun && w.req.Type.Key != serviceips.Services
}

// counts reports whether the result of an attempt counts.
func (h *Handlers) counts(ctx context.Context, w *writeRequest, c *current, r result) bool {
	switch {
	case !c.cached || r.err == nil && r.out.swapped:
		return true
	case raced(r.err):
		return false
	case r.err != nil && !refused(r.err):
		return true
	}
	newest, err := h.Store.Get(ctx, services.GetRequest{Key: w.req.Key()})
	if services.IsReason(err, services.ReasonNotFound) {
		return !c.exists()
	}
	return err != nil || newest.Revision == c.object.Revision
}

// changesNothing reports whether the request is known to change nothing, and admission
// agrees to it.
func (h *Handlers) changesNothing(ctx context.Context, w *writeRequest, c *current) (bool, error) {
	o, ok := h.fast.recall(w.digest)
	if !ok || !c.exists() || w.options.DryRun || o.revision != c.object.Revision || o.engine != w.req.Engine {
		return false, nil
	}
	w.admission.Warn(o.warned...)
	review, err := w.review(ctx, c, admitted{})
	if err != nil {
		return false, err
	}
	if changed, err := review.Mutate(ctx, admit.Object{JSON: o.mutated, Owners: o.owners}); err != nil || changed != nil {
		return false, err
	}
	err = review.Validate(ctx, admit.Object{JSON: o.checked, Owners: o.owners})
	return err == nil, err
}

func (f *fastPath) recall(d digest) (outcome, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.of[d]
	return o, ok
}

// remember keeps a request that has turned out to change nothing.
func (f *fastPath) remember(w *writeRequest, c *current, v validated) {
	if v.shown == nil || !w.admission.Asks() || len(v.json) > maxRememberedBytes {
		return
	}
	checked, err := w.shown(v.admitted)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = make(map[digest]outcome)
	}
	for old := range f.of { // whichever: who comes again is remembered again
		if len(f.of) < maxRemembered {
			break
		}
		delete(f.of, old)
	}
	f.of[w.digest] = outcome{revision: c.object.Revision, engine: w.req.Engine, mutated: v.shown, checked: checked.JSON,
		owners: checked.Owners, warned: v.warned}
}

// digestOf returns what a request is remembered by.
func digestOf(w *writeRequest) (d digest) {
	h, r := sha256.New(), w.req
	for _, part := range []string{r.Verb, r.Key().Path(), r.Type.APIVersion(), r.SubresourceName(), w.mediaType, r.URL.RawQuery, w.fieldManager(), r.User.Name} {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:])
		_, _ = io.WriteString(h, part)
	}
	_, _ = h.Write(w.raw)
	return digest(h.Sum(d[:0]))
}
