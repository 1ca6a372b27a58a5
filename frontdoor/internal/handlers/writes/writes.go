// Package writes serves create, update, patch and delete. Every write takes the
// same way: what is there, what the client wants, what the service and admission
// make of it, whether that may be, and a compare-and-swap in the store. It asks
// the type engine about types and admission about policy, and decides only the
// order. It serves "Path shapes", "Dry-run", "Patch content types" and "Two-phase
// deletion of a resource" of the specification.
package writes

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Handlers serve writes.
type Handlers struct {
	Store services.Store
	// Reads finds the collections that are deleted.
	Reads     *reads.Handlers
	Admission services.Admission
	// Allow asks authorization, when a request turns out to do more than it says.
	Allow func(*request.Request, services.Attributes) error
	// Addresses assigns those of Services.
	Addresses  *serviceips.Assigner
	Codec      *wire.Codec
	Vocabulary vocabulary.Vocabulary
	Log        *slog.Logger

	fast fastPath
}

// Create writes an object of the front door's own. It takes the way of every other
// write, but nobody is asked whether the front door may. An object that is there
// already stays as it is.
func (h *Handlers) Create(ctx context.Context, e *typesystem.Engine, t *catalogue.Type, object map[string]any) error {
	apiserver := services.UserInfo{Name: "system:apiserver", Groups: []string{services.GroupMasters, services.GroupAuthenticated}}
	meta := strategy.Metadata(object)
	namespace, _ := meta["namespace"].(string)
	r := &request.Request{Request: (&http.Request{Header: http.Header{}}).WithContext(ctx), Engine: e, Verb: "create", Type: t,
		Namespace: namespace, User: apiserver, Caller: apiserver, Audit: &audit.Record{}}
	w := &writeRequest{req: r, subject: typesystem.SubjectOf(nil), bodyType: t, admission: admit.Exempt(r), body: wire.Body{Object: object}}
	w.options.Manager = "portico"
	_, err := h.attempt(ctx, w, true)
	if services.IsReason(err, services.ReasonAlreadyExists) {
		return nil
	}
	return err
}
