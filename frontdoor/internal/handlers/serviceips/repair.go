package serviceips

import (
	"context"
	"slices"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// RepairEvery is the period of the repair. An address that a crash leaves claimed is
	// free again after two passes.
	RepairEvery = 10 * time.Second
	// wholeEvery is how many passes there are for one that reads all claims.
	wholeEvery = 18
)

// Repair reconciles claims with Services: it deletes unused claims and creates missing
// ones. Every replica may run one; a conflict means that another replica was faster.
type Repair struct {
	*Assigner
	// unused are the claims that were unused in the previous pass.
	unused map[resource.Key]int64
	// checked is the revision through which passes have seen all claims.
	checked int64
}

// Run repairs now and at each tick, until ctx ends.
func (r *Repair) Run(ctx context.Context, ticks <-chan time.Time) error {
	for i := 0; ; i++ {
		pass := r.Young
		if i%wholeEvery == 0 {
			pass = r.Whole
		}
		if err := pass(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("checking address claims failed, retrying later", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

// Young runs a pass over the claims since the previous pass. A crash leaves no others.
func (r *Repair) Young(ctx context.Context) error {
	claims, through, err := r.claims(ctx, func(o services.Object) bool {
		return o.Revision > r.checked || r.unused[o.Key] == o.Revision
	})
	if err != nil {
		return err
	}
	return r.drop(ctx, claims, through, r.holds)
}

// Whole runs a pass over all claims and Services, and creates missing claims.
func (r *Repair) Whole(ctx context.Context) error {
	// Before the Services: a claim is older than its Service.
	claims, through, err := r.claims(ctx, func(services.Object) bool { return true })
	if err != nil {
		return err
	}
	holders, err := r.holders(ctx)
	if err != nil {
		return err
	}
	held := func(_ context.Context, c claim) (bool, error) { return holders[c.key].UID == c.owner.UID, nil }
	if err := r.drop(ctx, claims, through, held); err != nil {
		return err
	}
	return r.restore(ctx, claims, holders)
}

// drop releases claims that were unused in the previous pass too and have not changed
// since. The oldest go first, so that a write that is still in progress fails even if it
// requires only the oldest of its claims.
func (r *Repair) drop(ctx context.Context, claims map[resource.Key]claim, through int64, held func(context.Context, claim) (bool, error)) error {
	unused := map[resource.Key]int64{}
	var twice []claim
	for key, c := range claims {
		switch ok, err := held(ctx, c); {
		case err != nil:
			return err
		case ok:
		case r.unused[key] == c.revision:
			twice = append(twice, c)
		default:
			unused[key] = c.revision
		}
	}
	slices.SortFunc(twice, byRevision)
	for _, c := range twice {
		if err := r.release(ctx, c); err != nil {
			return err
		}
	}
	r.unused, r.checked = unused, through
	return nil
}

// release deletes a claim unless its Service has been stored in the meantime. Renewing it
// first keeps a write that is still in progress from storing the Service afterwards.
func (r *Repair) release(ctx context.Context, c claim) error {
	renewed, err := r.renew(ctx, &c)
	if err != nil || !renewed {
		return err
	}
	held, err := r.holds(ctx, c)
	if err != nil || held {
		return err
	}
	r.Log.Info("released an address that no service uses", "claim", c.key)
	return r.Assigner.drop(ctx, c)
}

// claims lists the claims that match, and returns the revision through which it has seen all.
func (r *Repair) claims(ctx context.Context, match func(services.Object) bool) (map[resource.Key]claim, int64, error) {
	claims := map[resource.Key]claim{}
	through, err := r.visit(ctx, ipClaims, match, claims)
	if err != nil {
		return nil, 0, err
	}
	_, err = r.visit(ctx, portClaims, match, claims)
	return claims, through, err
}

// holds reports whether the Service of a claim is stored and has the address.
func (r *Repair) holds(ctx context.Context, c claim) (bool, error) {
	key := resource.Key{GroupResource: Services, Namespace: c.owner.Namespace, Name: c.owner.Name}
	object, err := r.Store.Get(ctx, services.GetRequest{Key: key})
	switch {
	case services.IsReason(err, services.ReasonNotFound):
		return false, nil
	case err != nil:
		return false, err
	case object.UID != c.owner.UID:
		return false, nil
	}
	service, err := tree.Decode(object.JSON)
	if err != nil {
		return false, err
	}
	return slices.Contains(r.held(service), c.key), nil
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
		case services.IsReason(err, services.ReasonAlreadyExists): // created since claims was read
		case err != nil:
			return err
		default:
			r.Log.Info("created a missing address claim", "claim", key, "service", of.Namespace+"/"+of.Name)
		}
	}
	return nil
}
