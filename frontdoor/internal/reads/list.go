package reads

import (
	"context"
	"net/http"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
)

// List serves a collection (sections "Read consistency" and "Chunked lists"),
// page by page from the store to the client: the whole is never held.
func (h *Handlers) List(w http.ResponseWriter, r *request.Request) error {
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.List)
	if err != nil {
		return err
	}
	o, err := request.ParseReadOptions(r.Query, r.Type)
	if err != nil {
		return err
	}
	request, issued, err := h.firstPage(r, o)
	if err != nil {
		return err
	}
	page, err := h.Store.List(r.Context(), request)
	if err != nil {
		return continuable(err, o)
	}
	shown, err := r.Engine.Views(r.Context(), page.Objects, r.Type)
	if err != nil {
		return err
	}
	meta := wire.ListMeta{Revision: page.Revision}
	if o.Limit > 0 && page.Next != "" {
		if meta.Continue, err = h.Tokens.encode(position{Revision: page.Revision, After: page.Next, List: listDigest(r, o), Issued: issued}); err != nil {
			return err
		}
		if page.Remaining >= 0 {
			meta.Remaining = &page.Remaining
		}
	}
	w.Header().Set("Content-Type", form.ContentType)
	out := h.Codec.Encoder(form, r.Type).List(w)
	if err := out.Begin(meta); err != nil {
		return err
	}
	for {
		for _, object := range shown {
			if err := out.Item(object); err != nil {
				return err
			}
		}
		if o.Limit > 0 || page.Next == "" {
			return out.End()
		}
		if page, err = h.nextPage(r, request, page); err != nil {
			return err
		}
		if shown, err = r.Engine.Views(r.Context(), page.Objects, r.Type); err != nil {
			return err
		}
	}
}

// firstPage returns the question for the first page of the answer, and when its
// list began.
func (h *Handlers) firstPage(r *request.Request, o request.ReadOptions) (services.ListRequest, int64, error) {
	request := services.ListRequest{GroupResource: r.Type.Key, Namespace: r.Namespace, Limit: o.Limit,
		LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
	if o.Token == "" {
		var err error
		request.Read, err = o.ListRead()
		return request, time.Now().Unix(), err
	}
	if o.Revision != 0 {
		return request, 0, services.BadRequest("resourceVersion: Forbidden: specifying resource version is not allowed when using continue")
	}
	if o.Match != "" {
		return request, 0, services.BadRequest("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided")
	}
	p, err := h.Tokens.decode(o.Token, listDigest(r, o))
	if err != nil {
		return request, 0, err
	}
	if p.expired(time.Now(), h.TokenLifetime) {
		return request, 0, errTokenExpired()
	}
	request.Read = services.Read{Mode: services.Exact, Revision: p.Revision}
	request.After = p.After
	return request, p.Issued, nil
}

// nextPage asks for the page after one, at the same revision.
func (h *Handlers) nextPage(r *request.Request, request services.ListRequest, last services.Page) (services.Page, error) {
	request.Read = services.Read{Mode: services.Exact, Revision: last.Revision}
	request.After = last.Next
	return h.Store.List(r.Context(), request)
}

// continuable tells a client with an old token what to do.
func continuable(err error, o request.ReadOptions) error {
	if o.Token != "" && services.IsReason(err, services.ReasonExpired) {
		return errTokenExpired()
	}
	return err
}

func errTokenExpired() *services.Status {
	return services.Expired("The provided continue parameter is too old to display a consistent list result. " +
		"You must start a new list without the continue parameter.")
}

// ForEach reads a whole collection at one revision, page by page, and hands over
// each object. It returns that revision.
func ForEach(ctx context.Context, store services.Reader, r services.ListRequest, visit func(services.Object) error) (int64, error) {
	for {
		page, err := store.List(ctx, r)
		if err != nil {
			return 0, err
		}
		for _, object := range page.Objects {
			if err := visit(object); err != nil {
				return 0, err
			}
		}
		if page.Next == "" {
			return page.Revision, nil
		}
		r.Read, r.After = services.Read{Mode: services.Exact, Revision: page.Revision}, page.Next
	}
}
