// Package ownservice maintains the Service in the default namespace through which clients
// inside the cluster reach the API, with endpoints for every running front door. Each front
// door renews a record in the store that the API does not serve; the others remove the
// address of a record that is not renewed. Its writes skip authorization and admission.
// It serves "What the service does" of the specification.
package ownservice

import (
	"context"
	"log/slog"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// renewEvery is the period of renewal.
	renewEvery = 10 * time.Second
	// leaveTimeout bounds the removal of the record when a front door stops.
	leaveTimeout = 2 * time.Second
	// namespace is the namespace of the Service, and publicPort its port.
	namespace  = "default"
	publicPort = 443
)

// Config configures a Keeper.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Store      services.Store
	Writes     *writes.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	// Self is the address of this front door, which is not advertised without an IP.
	Self records.Address
	// Announced is how other front doors find this one.
	Announced records.Announced
	// ClusterIP is the preferred cluster IP of the Service. If another Service has it,
	// any other one is assigned.
	ClusterIP string
	// Counted is called with the number of running front doors.
	Counted func(int)
	Log     *slog.Logger
}

// Keeper maintains the Service.
type Keeper struct {
	Config
	book *records.Book
	now  func() time.Time
}

// New returns a Keeper. The caller must call Run.
func New(c Config) *Keeper {
	return &Keeper{Config: c, book: &records.Book{Store: c.Store}, now: time.Now}
}

// Run reconciles the Service until ctx ends, then removes this front door's address and
// returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	retry.Every(ctx, renewEvery, k.pass, func(err error) {
		k.Log.Warn("updating the Service of the API failed, retrying", "error", err)
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := k.leave(last); err != nil {
		k.Log.Debug("removing the address of this front door failed, other front doors will remove it", "error", err)
	}
	return nil
}

// pass renews the record and brings the objects up to date.
func (k *Keeper) pass(ctx context.Context) error {
	if err := k.ensureService(ctx); err != nil {
		return err
	}
	if err := k.book.Renew(ctx, k.record(), k.now()); err != nil {
		return err
	}
	alive, count, err := k.book.Alive(ctx, k.now())
	if err != nil {
		return err
	}
	k.Counted(count)
	if !k.Self.Valid() {
		return nil
	}
	return k.advertise(ctx, alive)
}

func (k *Keeper) record() records.Record {
	return records.Record{Address: k.Self, Announced: k.Announced}
}

// leave removes the record and the address.
func (k *Keeper) leave(ctx context.Context) error {
	if err := k.book.Remove(ctx, k.record()); err != nil {
		return err
	}
	alive, _, err := k.book.Alive(ctx, k.now())
	if err != nil || len(alive) == 0 || !k.Self.Valid() { // the last front door does not change the addresses
		return err
	}
	return k.advertise(ctx, alive)
}

// ensureService creates the Service if it does not exist. It never updates it.
func (k *Keeper) ensureService(ctx context.Context) error {
	unchanged := func(map[string]any) error { return nil }
	err := k.Writes.Ensure(ctx, k.Engine(), k.service(k.ClusterIP), unchanged)
	if services.IsReason(err, services.ReasonInvalid) && k.ClusterIP != "" { // another Service has the cluster IP
		err = k.Writes.Ensure(ctx, k.Engine(), k.service(""), unchanged)
	}
	return err
}

// advertise updates the Endpoints and the EndpointSlice to the addresses.
func (k *Keeper) advertise(ctx context.Context, alive []records.Address) error {
	if len(alive) == 0 {
		return nil // unexpected: the record of this front door has just been renewed
	}
	for _, object := range []map[string]any{k.endpoints(alive), k.slice(alive)} {
		err := k.Writes.Ensure(ctx, k.Engine(), object, func(stored map[string]any) error {
			for _, field := range []string{"subsets", "endpoints", "ports", "addressType"} {
				if object[field] != nil {
					stored[field] = object[field]
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
