package serviceips

import (
	"context"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// RepairEvery is the period of the repair. It is also the grace of a claim whose
// Service is not stored yet, and therefore many times StoreWithin.
const RepairEvery = 3 * time.Minute

// Repair reconciles claims with Services: it deletes unused claims and creates missing
// ones. Every replica may run one; a conflict means that another replica was faster.
type Repair struct {
	*Assigner
	// unheld are the claims that were unused in the previous pass.
	unheld map[resource.Key]int64
}

// Run repairs now and at each tick, until ctx ends.
func (r *Repair) Run(ctx context.Context, ticks <-chan time.Time) error {
	for {
		if err := r.Once(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("checking address claims failed, retrying later", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

// Once runs one pass. It deletes a claim that was unused in the previous pass too and
// has not changed since: no write of its Service is in progress any more.
func (r *Repair) Once(ctx context.Context) error {
	claims, err := r.claims(ctx) // before the Services: a claim is older than its Service
	if err != nil {
		return err
	}
	holders, err := r.holders(ctx)
	if err != nil {
		return err
	}
	unheld := map[resource.Key]int64{}
	for key, c := range claims {
		if holders[key].UID == c.owner.UID {
			continue
		}
		if r.unheld[key] != c.revision {
			unheld[key] = c.revision
			continue
		}
		r.Log.Info("released an address that no service uses", "claim", key)
		if err := r.drop(ctx, c); err != nil {
			return err
		}
	}
	r.unheld = unheld
	return r.restore(ctx, claims, holders)
}

// claims lists all claims.
func (r *Repair) claims(ctx context.Context) (map[resource.Key]claim, error) {
	all, err := r.all(ctx, ipClaims)
	if err != nil {
		return nil, err
	}
	ports, err := r.all(ctx, portClaims)
	for key, c := range ports {
		all[key] = c
	}
	return all, err
}

// holders returns the Service of each address in use.
func (r *Repair) holders(ctx context.Context) (map[resource.Key]owner, error) {
	holders := map[resource.Key]owner{}
	_, err := services.ForEach(ctx, r.Store, services.ListRequest{GroupResource: Services}, func(object services.Object) error {
		service, err := tree.Decode(object.JSON)
		if err != nil {
			return err
		}
		of := ownerOf(service)
		for _, key := range r.held(service) {
			if other, twice := holders[key]; twice && other.UID != of.UID {
				r.Log.Error("two services have the same address", "claim", key,
					"service", of.Namespace+"/"+of.Name, "other", other.Namespace+"/"+other.Name)
				continue
			}
			holders[key] = of
		}
		return nil
	})
	return holders, err
}

// restore creates missing claims. A claim for a Service that has just been deleted is
// removed by later passes.
func (r *Repair) restore(ctx context.Context, claims map[resource.Key]claim, holders map[resource.Key]owner) error {
	for key, of := range holders {
		if _, ok := claims[key]; ok {
			continue
		}
		_, err := r.create(ctx, key, of)
		switch {
		case services.IsReason(err, services.ReasonAlreadyExists): // it is new
		case err != nil:
			return err
		default:
			r.Log.Info("created a missing address claim", "claim", key, "service", of.Namespace+"/"+of.Name)
		}
	}
	return nil
}
