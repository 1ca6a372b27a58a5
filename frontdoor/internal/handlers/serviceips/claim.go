package serviceips

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// owner is the Service that a claim is for. A recreated Service has another UID.
type owner struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

func ownerOf(service map[string]any) owner {
	meta := strategy.Metadata(service)
	var o owner
	o.Namespace, _ = meta["namespace"].(string)
	o.Name, _ = meta["name"].(string)
	o.UID, _ = meta["uid"].(string)
	return o
}

// claim is one address in use, as stored.
type claim struct {
	key      resource.Key
	revision int64
	owner    owner
}

// stored is the JSON form of a claim.
type stored struct {
	Metadata map[string]string `json:"metadata"`
	Owner    owner             `json:"owner"`
}

func contentOf(key resource.Key, o owner) (services.Content, error) {
	raw, err := json.Marshal(stored{Metadata: map[string]string{"name": key.Name}, Owner: o})
	return services.Content{JSON: raw}, err
}

func claimOf(object services.Object) (claim, error) {
	var s stored
	err := json.Unmarshal(object.JSON, &s)
	if err != nil {
		err = fmt.Errorf("%s: %w", object.Key, err)
	}
	return claim{object.Key, object.Revision, s.Owner}, err
}

// lookup reads a claim. It returns NotFound (404) if the address is free.
func (a *Assigner) lookup(ctx context.Context, key resource.Key) (claim, error) {
	object, err := a.Store.Get(ctx, services.GetRequest{Key: key})
	if err != nil {
		return claim{}, err
	}
	return claimOf(object)
}

// create claims an address. It returns AlreadyExists (409) if the address is not free.
func (a *Assigner) create(ctx context.Context, key resource.Key, o owner) (claim, error) {
	content, err := contentOf(key, o)
	if err != nil {
		return claim{}, err
	}
	object, err := a.Store.Create(ctx, services.CreateRequest{Key: key, Content: content})
	return claim{key, object.Revision, o}, err
}

// drop deletes a claim at its revision. It returns nil if the claim does not exist or has
// been renewed: then it belongs to another write.
func (a *Assigner) drop(ctx context.Context, c claim) error {
	_, err := a.Store.Delete(ctx, services.DeleteRequest{Key: c.key, Revision: c.revision})
	if services.IsReason(err, services.ReasonNotFound) || services.IsReason(err, services.ReasonConflict) {
		return nil
	}
	return err
}

// byRevision orders claims from the oldest to the newest.
func byRevision(a, b claim) int { return cmp.Compare(a.revision, b.revision) }

// all lists the claims of one kind.
func (a *Assigner) all(ctx context.Context, kind resource.GroupResource) (map[resource.Key]claim, error) {
	claims := map[resource.Key]claim{}
	_, err := a.visit(ctx, kind, func(services.Object) bool { return true }, claims)
	return claims, err
}

// visit adds the matching claims of one kind to claims, and returns the revision at which
// they were read.
func (a *Assigner) visit(ctx context.Context, kind resource.GroupResource, match func(services.Object) bool, claims map[resource.Key]claim) (int64, error) {
	return services.ForEach(ctx, a.Store, services.ListRequest{GroupResource: kind}, func(object services.Object) error {
		if !match(object) {
			return nil
		}
		c, err := claimOf(object)
		claims[c.key] = c
		return err
	})
}

// claimGiven claims the address that a Service requests. free is false if another
// Service has it. If the Service holds the claim although its stored object lacks the
// address, the claim comes from another write of it, which may still be in progress.
// Renewing the claim keeps that write from giving it back.
func (m *Assignment) claimGiven(ctx context.Context, key resource.Key) (free bool, err error) {
	for ctx.Err() == nil {
		if !m.dryRun {
			c, err := m.create(ctx, key, m.owner)
			if err == nil {
				m.note(c)
				return true, nil
			}
			if !services.IsReason(err, services.ReasonAlreadyExists) {
				return false, err
			}
		}
		c, err := m.lookup(ctx, key)
		gone := services.IsReason(err, services.ReasonNotFound)
		switch {
		case gone && m.dryRun:
			return true, nil
		case gone:
			continue
		case err != nil || c.owner.UID != m.owner.UID || m.dryRun:
			return c.owner.UID == m.owner.UID, err
		}
		if renewed, err := m.renew(ctx, &c); err != nil || renewed {
			m.taken[key] = true
			m.renewed = append(m.renewed, c)
			return true, err
		}
	}
	return false, ctx.Err()
}

// renew gives a claim a new revision. It returns false if another write was faster.
func (a *Assigner) renew(ctx context.Context, c *claim) (bool, error) {
	content, err := contentOf(c.key, c.owner)
	if err != nil {
		return false, err
	}
	object, err := a.Store.Update(ctx, services.UpdateRequest{Key: c.key, Revision: c.revision, Content: content})
	if services.IsReason(err, services.ReasonNotFound) || services.IsReason(err, services.ReasonConflict) {
		return false, nil
	}
	c.revision = object.Revision
	return err == nil, err
}

// guesses is how many random addresses are tried before all claims are read.
const guesses = 4

// claimAny claims a free address. It tries a few random ones, which succeeds at once unless
// the range is nearly full, and then all from a random start, so that concurrent writers
// rarely try the same one.
func (m *Assignment) claimAny(ctx context.Context, from space) (claim, error) {
	size := from.size()
	for range min(guesses, size) {
		if c, ok, err := m.try(ctx, from.claim(from.at(rand.IntN(size)))); ok || err != nil {
			return c, err
		}
	}
	claims, err := m.all(ctx, from.kind())
	if err != nil {
		return claim{}, err
	}
	start := 0
	if size > 0 {
		start = rand.IntN(size)
	}
	for i := range size {
		key := from.claim(from.at((start + i) % size))
		if _, inUse := claims[key]; inUse || m.taken[key] {
			continue
		}
		if c, ok, err := m.try(ctx, key); ok || err != nil {
			return c, err
		}
	}
	return claim{}, fmt.Errorf("failed to allocate a service %s of %s: range is full", from.what(), from)
}

// try claims an address if it is free.
func (m *Assignment) try(ctx context.Context, key resource.Key) (c claim, ok bool, err error) {
	if m.taken[key] {
		return c, false, nil
	}
	if reserved, err := m.reserved(ctx, key); reserved || err != nil {
		return c, false, err
	}
	if m.dryRun {
		_, err := m.lookup(ctx, key)
		if services.IsReason(err, services.ReasonNotFound) {
			c = claim{key: key, owner: m.owner}
			m.taken[key] = true
			return c, true, nil
		}
		return c, false, err
	}
	c, err = m.create(ctx, key, m.owner)
	if services.IsReason(err, services.ReasonAlreadyExists) {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	m.note(c)
	return c, true, nil
}

// note records a claim that this request created.
func (m *Assignment) note(c claim) {
	m.claimed = append(m.claimed, c)
	m.taken[c.key] = true
}
