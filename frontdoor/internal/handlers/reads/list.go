package reads

import (
	"bytes"
	"context"
	"math"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/permitted"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/frontdoor/internal/wire/outcome"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// Listing is a list request in progress (sections "Read consistency" and "Chunked
// lists"). Its first page has been read; it never holds more than one page.
type Listing struct {
	Meta wire.ListMeta

	store services.Reader
	query services.ListRequest // of the first page
	page  services.Page        // the first one
	// single is true if the client requests a part of the collection. The store may divide it into pages to bound memory;
	// left is how many objects of it the first one does not have.
	single bool
	left   int
	costs  *fairness.Costs
	// several is set if a page after the first was read.
	several bool
}

// measure counts the objects of a collection that are read.
type measure struct{ objects, bytes int64 }

func (m *measure) add(o *services.Object) {
	m.objects++
	m.bytes += int64(len(o.JSON))
}

// record records the size of a collection that was read completely.
func (m measure) record(costs *fairness.Costs, q services.ListRequest) {
	if q.LabelSelector == "" && q.FieldSelector == "" {
		costs.Measured(q.GroupResource, q.Namespace, m.objects, m.bytes)
	}
}

// Open parses the request and reads the first page.
func (h *Handlers) Open(r *request.Request) (*Listing, error) {
	o, err := request.ParseReadOptions(r)
	if err != nil {
		return nil, err
	}
	query, began, err := h.firstPage(r, o)
	if err != nil {
		return nil, err
	}
	store, costs, err := h.reader(r, o.FieldSelector)
	if err != nil {
		return nil, err
	}
	query.FindEnd = query.Limit > 0
	page, err := readPage(r.Context(), store, query)
	if err != nil {
		return nil, h.continuable(err, r, o, query.After)
	}
	l := &Listing{Meta: wire.ListMeta{Revision: page.Revision}, store: store, query: query, page: page, single: o.Limit > 0, costs: costs}
	next := page.Next
	if page.End != nil {
		next, l.left = *page.End, query.Limit-len(page.Objects)
	}
	if l.single && next != "" {
		l.Meta.Continue, err = h.Tokens.encode(position{Revision: page.Revision, After: next, List: listDigest(r, o), origin: began, Permitted: permittedDigest(r)})
		if page.Remaining >= 0 {
			remaining := page.Remaining - int64(l.left)
			l.Meta.Remaining = &remaining
		}
	}
	return l, err
}

// Pages calls visit with each page of objects, in order, until it returns an error.
func (l *Listing) Pages(ctx context.Context, visit func([]services.Object) error) error {
	var read measure
	query, page, left := l.query, l.page, l.left
	for {
		for i := range page.Objects {
			read.add(&page.Objects[i])
		}
		if err := visit(page.Objects); err != nil {
			return err
		}
		if page.Next == "" && l.query.After == "" {
			read.record(l.costs, query)
		}
		if page.Next == "" || l.single && left <= 0 {
			return nil
		}
		query, l.several, l.page.Objects = page.Following(query), true, nil // a listing holds one page
		if query.FindEnd = false; l.single {
			query.Limit = left
		}
		var err error
		if page, err = readPage(ctx, l.store, query); err != nil {
			return err
		}
		left -= len(page.Objects)
	}
}

// Again returns the list for another visit of the same objects after Pages. If there were several
// pages, they are read again at the same revision; the error is Expired (410) if that has been compacted.
func (l *Listing) Again(ctx context.Context) (*Listing, error) {
	again := *l
	again.costs, again.several = nil, false
	if !l.several {
		return &again, nil
	}
	again.query.Read = services.Read{Mode: services.Exact, Revision: l.Meta.Revision}
	var err error
	again.page, err = readPage(ctx, l.store, again.query)
	if l.left > 0 {
		again.left = l.query.Limit - len(again.page.Objects)
	}
	return &again, err
}

// readPage reads a page, with a separate span in the trace of the request.
func readPage(ctx context.Context, store services.Reader, query services.ListRequest) (services.Page, error) {
	ctx, span := tracing.Start(ctx, "read")
	page, err := store.List(ctx, query)
	span.End(err)
	return page, err
}

// List serves a collection, streamed page by page from the store to the client.
func (h *Handlers) List(w http.ResponseWriter, r *request.Request) error {
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.List)
	if err != nil {
		return err
	}
	l, err := h.Open(r)
	if err != nil {
		return err
	}
	return h.Send(w, r, form, l)
}

// Send sends a list, page by page.
func (h *Handlers) Send(w http.ResponseWriter, r *request.Request, form wire.Form, l *Listing) (err error) {
	ctx, span := tracing.Start(r.Context(), "encoded")
	defer func() { span.End(err) }()
	var out wire.ListWriter
	write := func(page []services.Object) error {
		for len(page) > 0 || out == nil {
			part := page[:min(len(page), partOf(r.Type))]
			page = page[len(part):]
			shown, err := r.Engine.Views(ctx, part, r.Type)
			if err != nil {
				return err
			}
			if out == nil { // nothing sent yet: an error can be a normal error response
				w.Header().Set("Content-Type", form.ContentType)
				out = h.Codec.Encoder(form, r.Type).List(w)
				if err := out.Begin(l.Meta); err != nil {
					return err
				}
			}
			for _, object := range shown {
				if err := out.Item(object); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := l.Pages(ctx, write); err != nil {
		return err
	}
	again, err := out.Again()
	if err != nil {
		return err
	}
	if again {
		second, err := l.Again(ctx)
		if err != nil {
			return err
		}
		if err := second.Pages(ctx, write); err != nil {
			return err
		}
	}
	return out.End()
}

// partOf returns how many objects of a page are decoded at a time. Defaulting may make an
// object much larger than its stored form. A conversion webhook is called once per page.
func partOf(t *catalogue.Type) int {
	if t.Webhook != nil {
		return math.MaxInt
	}
	return 16
}

// firstPage returns the store request for the first page of the response, and the origin
// of the list.
func (h *Handlers) firstPage(r *request.Request, o request.ReadOptions) (services.ListRequest, origin, error) {
	request := services.ListRequest{GroupResource: r.Type.Key, Namespace: r.Namespace, Limit: int(o.Limit),
		LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
	if o.Token == "" {
		request.Read = o.ListRead()
		if request.Read.Mode == services.Exact && h.expired(r, request.Read.Revision) {
			return request, origin{}, services.Expired("The resourceVersion for the provided list is too old.")
		}
		return request, h.Tokens.origin(), nil
	}
	p, err := h.Tokens.decode(o.Token, listDigest(r, o))
	switch {
	case err != nil && h.expired(r, p.Revision):
		return request, origin{}, services.Expired(tooOld + ". Start a new list without it.")
	case err != nil:
		return request, origin{}, err
	case !bytes.Equal(p.Permitted, permittedDigest(r)):
		return request, origin{}, permitted.Changed()
	case h.expired(r, p.Revision) || h.Tokens.expired(p.origin, h.TokenLifetime):
		return request, origin{}, h.tokenExpired(r, o, p.After)
	}
	if p.Revision > 0 {
		request.Read = services.Read{Mode: services.Exact, Revision: p.Revision}
	}
	request.After = p.After
	return request, p.origin, nil
}

// continuable replaces the Expired error of a list with a continue token by one that says
// how the client can continue.
func (h *Handlers) continuable(err error, r *request.Request, o request.ReadOptions, after string) error {
	if o.Token != "" && services.IsReason(err, services.ReasonExpired) {
		return h.tokenExpired(r, o, after)
	}
	return err
}

const tooOld = "The provided continue parameter is too old to display a consistent list result"

// tokenExpired returns the error of a token whose revision is gone. It has a token with which the
// list goes on after the same key, at the revision of the next chunk.
func (h *Handlers) tokenExpired(r *request.Request, o request.ReadOptions, after string) error {
	expired := services.Expired(tooOld + ". Start a new list without it, or send the token of this response for the objects that are left: " +
		"the list then has the changes since its first chunk in some chunks and not in others.")
	token, err := h.Tokens.encode(position{After: after, List: listDigest(r, o), origin: h.Tokens.origin(), Permitted: permittedDigest(r)})
	if err != nil {
		return err
	}
	return &outcome.Continued{Status: expired, Token: token}
}
