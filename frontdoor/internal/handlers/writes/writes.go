// Package writes serves create, update, patch and delete. Every write has the same steps:
// it reads the current object, computes the desired one, runs defaulting and mutating
// admission, validates the result, and stores it with a compare-and-swap. The package
// defines their order; package typesystem implements the types and admission the policy.
// It serves "Path shapes", "Dry-run", "Patch content types" and "Two-phase deletion of a
// resource" of the specification.
package writes

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/repairs"
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
	// Reads lists the objects of a deletecollection.
	Reads     *reads.Handlers
	Admission services.Admission
	// Allow authorizes what a request does beyond its verb, such as an update that creates
	// the object.
	Allow func(*request.Request, services.Attributes) error
	// Addresses assigns the addresses and node ports of Services.
	Addresses  *serviceips.Assigner
	Codec      *wire.Codec
	Vocabulary vocabulary.Vocabulary
	Log        *slog.Logger

	fast fastPath
}

func (h *Handlers) repairer() repairs.Repairer {
	return repairs.Repairer{Store: h.Store, Allow: h.Allow, Log: h.Log}
}

// Create creates an object as the front door itself, without authorization and admission.
// An object that exists is left unchanged, without an error.
func (h *Handlers) Create(ctx context.Context, e *typesystem.Engine, t *catalogue.Type, object map[string]any) error {
	return h.CreateAs(ctx, h.ownManager(), e, t, object)
}

// ownManager is the field manager of what the front door itself writes.
func (h *Handlers) ownManager() string { return h.Vocabulary.Namespace("apiserver") }

// CreateAs is Create for a part of the front door that has its own field manager.
func (h *Handlers) CreateAs(ctx context.Context, manager string, e *typesystem.Engine, t *catalogue.Type, object map[string]any) error {
	apiserver := services.UserInfo{Name: "system:apiserver", Groups: []string{services.GroupMasters, services.GroupAuthenticated}}
	meta := strategy.Metadata(object)
	namespace, _ := meta["namespace"].(string)
	r := &request.Request{Request: (&http.Request{Header: http.Header{}}).WithContext(ctx), Engine: e, Verb: "create", Type: t,
		Namespace: namespace, User: apiserver, Caller: apiserver, Audit: &audit.Record{}}
	w := &writeRequest{req: r, subject: typesystem.SubjectOf(nil), bodyType: t, admission: admit.Exempt(r), body: wire.Body{Object: object}}
	w.options.Manager = manager
	_, err := h.attempt(ctx, w, true)
	if services.IsReason(err, services.ReasonAlreadyExists) {
		return nil
	}
	return err
}
