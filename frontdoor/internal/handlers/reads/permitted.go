package reads

import (
	"context"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// readable returns the store as the request may read it, and where the sizes of collections
// are recorded: those of a part are not.
func (h *Handlers) readable(r *request.Request) (services.Reader, *fairness.Costs) {
	if r.Permitted.Restricts() {
		return within{h.Store, r.Permitted.Namespaces}, nil
	}
	return h.Store, h.Costs
}

// permittedDigest identifies what a list with permitted=true may read; nil for another list.
func permittedDigest(r *request.Request) []byte {
	if r.Permitted == nil {
		return nil
	}
	return r.Permitted.Digest()
}

// within is a Reader whose lists across all namespaces read only some of them, one after the
// other. What it reads of others is nothing, not even their number.
type within struct {
	services.Reader
	namespaces []string // in order
}

// comparable returns BadRequest (400) for a watch with permitted=true that begins at a revision of
// another etcd than that of roles: whether these have changed since cannot be known.
func (x *watching) comparable(ctx context.Context) error {
	if x.r.Permitted == nil {
		return nil
	}
	var epochs []string
	for _, gr := range []resource.GroupResource{x.r.Type.Key, {Group: x.Vocabulary.Group("rbac.authorization."), Resource: "clusterroles"}} {
		page, err := x.Store.List(ctx, services.ListRequest{GroupResource: gr, Limit: 1, Read: services.Read{Mode: services.AnyRevision}})
		if err != nil {
			return err
		}
		epochs = append(epochs, page.Epoch)
	}
	if epochs[0] != epochs[1] {
		return services.BadRequest("permitted=true: %s have a separate etcd, so a watch must begin with sendInitialEvents=true", x.r.Type.Key)
	}
	return nil
}

// noNamespace is no name of a namespace. Its list has the revision, or the error, of a list
// that finds nothing.
const noNamespace = "-"

// List implements services.Reader. Page.Next is the namespace where the following page starts,
// and its Page.Next in that namespace.
func (w within) List(ctx context.Context, r services.ListRequest) (services.Page, error) {
	r.FindEnd = false // it would be that of one namespace
	name, after, _ := strings.Cut(r.After, "/")
	rest := w.namespaces
	if r.After != "" {
		i, found := slices.BinarySearch(rest, name)
		if rest = rest[i:]; !found {
			after = ""
		}
	}
	if len(rest) == 0 {
		r.Namespace, r.After = noNamespace, ""
		return w.Reader.List(ctx, r)
	}
	var all services.Page
	limit := r.Limit // 0: a page ends with the first objects
	for i, namespace := range rest {
		r.Namespace, r.After = namespace, after
		page, err := w.Reader.List(ctx, r)
		if err != nil {
			return all, err
		}
		page.Objects = append(all.Objects, page.Objects...)
		all, after = page, ""
		all.Remaining = -1 // there may be more in other namespaces
		switch {
		case page.Next != "":
			all.Next = namespace + "/" + page.Next
		case i+1 < len(rest):
			all.Next = rest[i+1] + "/"
		}
		if read := len(all.Objects); page.Next != "" || read > 0 && read >= limit {
			break
		}
		r.Read, r.Limit = services.Read{Mode: services.Exact, Revision: page.Revision}, max(limit-len(all.Objects), 0)
	}
	return all, nil
}
