package frontdoor

import (
	"net/http"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
)

// list serves a collection (sections "Read consistency" and "Chunked lists"),
// page by page from the store to the client: the whole is never held.
func (d *door) list(w http.ResponseWriter, r *Request) error {
	form, err := d.codec.Negotiate(r.Request, r.Type, wire.List)
	if err != nil {
		return err
	}
	o, err := parseReadOptions(r.Query, r.Type)
	if err != nil {
		return err
	}
	request, issued, err := d.firstPage(r, o)
	if err != nil {
		return err
	}
	page, err := d.storage.List(r.Context(), request)
	if err != nil {
		return continuable(err, o)
	}
	meta := wire.ListMeta{Revision: page.Revision}
	if o.limit > 0 && page.Next != "" {
		if meta.Continue, err = d.tokens.encode(position{Revision: page.Revision, After: page.Next, List: listDigest(r, o), Issued: issued}); err != nil {
			return err
		}
		if page.Remaining >= 0 {
			meta.Remaining = &page.Remaining
		}
	}
	w.Header().Set("Content-Type", form.ContentType)
	out := d.codec.Encoder(form, r.Type).List(w)
	if err := out.Begin(meta); err != nil {
		return err
	}
	for {
		for _, object := range page.Objects {
			if object, err = d.view(object, r.Type); err != nil {
				return err
			}
			if err := out.Item(object); err != nil {
				return err
			}
		}
		if o.limit > 0 || page.Next == "" {
			return out.End()
		}
		if page, err = d.nextPage(r, request, page); err != nil {
			return err
		}
	}
}

// firstPage returns the question for the first page of the answer, and when its
// list began.
func (d *door) firstPage(r *Request, o readOptions) (services.ListRequest, int64, error) {
	request := services.ListRequest{GroupResource: r.Type.Key, Namespace: r.Namespace, Limit: o.limit,
		LabelSelector: o.labelSelector, FieldSelector: o.fieldSelector}
	if o.token == "" {
		var err error
		request.Read, err = o.listRead()
		return request, time.Now().Unix(), err
	}
	if o.revision != 0 {
		return request, 0, services.BadRequest("resourceVersion: Forbidden: specifying resource version is not allowed when using continue")
	}
	if o.match != "" {
		return request, 0, services.BadRequest("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided")
	}
	p, err := d.tokens.decode(o.token, listDigest(r, o))
	if err != nil {
		return request, 0, err
	}
	if p.expired(time.Now(), d.tokenLifetime) {
		return request, 0, errTokenExpired()
	}
	request.Read = services.Read{Mode: services.Exact, Revision: p.Revision}
	request.After = p.After
	return request, p.Issued, nil
}

// nextPage asks for the page after one, at the same revision.
func (d *door) nextPage(r *Request, request services.ListRequest, last services.Page) (services.Page, error) {
	request.Read = services.Read{Mode: services.Exact, Revision: last.Revision}
	request.After = last.Next
	return d.storage.List(r.Context(), request)
}

// continuable tells a client with an old token what to do.
func continuable(err error, o readOptions) error {
	if o.token != "" && services.IsReason(err, services.ReasonExpired) {
		return errTokenExpired()
	}
	return err
}

func errTokenExpired() *services.Status {
	return services.Expired("The provided continue parameter is too old to display a consistent list result. " +
		"You must start a new list without the continue parameter.")
}

// forEach reads a whole collection at one revision and hands over each object. It
// returns that revision.
func (d *door) forEach(r *Request, request services.ListRequest, visit func(services.Object) error) (int64, error) {
	page, err := d.storage.List(r.Context(), request)
	for {
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
		page, err = d.nextPage(r, request, page)
	}
}
