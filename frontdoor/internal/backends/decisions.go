package backends

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/portico-platform/portico/services"
)

const (
	// decisionsKept is the maximum number of entries; the least recently used are evicted.
	decisionsKept = 10_000
	// decisionLifetime bounds how long a decision is used without a new one of authz, for the
	// time in which the front door does not receive changes although authz does.
	decisionLifetime = 5 * time.Second
	// maxDecisionKey bounds the memory of an entry, in bytes.
	maxDecisionKey = 1 << 10
)

// Decisions is an Authz that caches what another one allows, for as long as the roles and
// bindings by which it was allowed have not changed. Denials are not cached: authz denies only
// by the newest roles and bindings.
type Decisions struct {
	services.Authz
	// unchanged reports whether no role or binding has changed after a revision.
	unchanged func(revision int64) bool
	known     *lru.Cache[string, allowed]
}

type allowed struct {
	services.Decision
	until time.Time
}

// NewDecisions returns an empty cache.
func NewDecisions(authz services.Authz, unchanged func(revision int64) bool) *Decisions {
	known, err := lru.New[string, allowed](decisionsKept)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &Decisions{Authz: authz, unchanged: unchanged, known: known}
}

// Authorize implements services.Authz.
func (d *Decisions) Authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	now := time.Now()
	known, keys, ok := d.lookUp(a, now)
	if ok {
		return known, nil
	}
	decision, err := d.Authz.Authorize(ctx, a)
	if err == nil {
		d.keep(keys, decision, now)
	}
	return decision, err
}

// AuthorizeBatch implements services.AuthzBatch: authz is called for what is not cached.
func (d *Decisions) AuthorizeBatch(ctx context.Context, requests []services.Attributes) ([]services.AuthzResult, error) {
	now, results := time.Now(), make([]services.AuthzResult, len(requests))
	var open []int
	var asked []services.Attributes
	var keys []decisionKeys
	for i, a := range requests {
		known, k, ok := d.lookUp(a, now)
		if ok {
			results[i].Decision = known
			continue
		}
		open, asked, keys = append(open, i), append(asked, a), append(keys, k)
	}
	for n, r := range services.AuthorizeAll(ctx, d.Authz, asked) {
		if results[open[n]] = r; r.Err == nil {
			d.keep(keys[n], r.Decision, now)
		}
	}
	return results, nil
}

// decisionKeys are the keys of a decision that is the same for every name, and of one that is not.
// They are empty if they are too long.
type decisionKeys struct{ anyName, exact string }

// lookUp returns the cached decision; or, with false, the keys for the one of authz.
func (d *Decisions) lookUp(a services.Attributes, now time.Time) (known services.Decision, k decisionKeys, ok bool) {
	name := a.Name
	a.Name = ""
	if k.anyName = decisionKey(a, true); len(k.anyName) > maxDecisionKey {
		return known, decisionKeys{}, false
	}
	if known, ok = d.recall(k.anyName, now); ok {
		return known, k, true
	}
	a.Name = name
	if k.exact = decisionKey(a, false); len(k.exact) > maxDecisionKey {
		return known, decisionKeys{}, false
	}
	known, ok = d.recall(k.exact, now)
	return known, k, ok
}

// keep caches a permission that a revision is known of.
func (d *Decisions) keep(k decisionKeys, decision services.Decision, now time.Time) {
	if k.exact == "" || !decision.Allowed || decision.Revision <= 0 {
		return
	}
	key := k.exact
	if decision.AnyName {
		key = k.anyName
	}
	d.known.Add(key, allowed{decision, now.Add(decisionLifetime)})
}

func (d *Decisions) recall(key string, now time.Time) (services.Decision, bool) {
	known, ok := d.known.Get(key)
	return known.Decision, ok && now.Before(known.until) && d.unchanged(known.Revision)
}

// decisionKey identifies a request for authorization, or all that differ only in the name. What
// is allowed for as long as roles and bindings are the same does not depend on selectors.
func decisionKey(a services.Attributes, anyName bool) string {
	key := make([]byte, 0, 256)
	add := func(values ...string) {
		key = binary.AppendUvarint(key, uint64(len(values)))
		for _, v := range values {
			key = binary.AppendUvarint(key, uint64(len(v)))
			key = append(key, v...)
		}
	}
	if anyName {
		key = append(key, 1)
	} else {
		key = append(key, 0)
	}
	add(a.Verb, a.Path, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name, a.User.Name, a.User.UID)
	add(a.User.Groups...)
	if len(a.User.Extra) > 0 {
		for _, name := range slices.Sorted(maps.Keys(a.User.Extra)) {
			add(name)
			add(a.User.Extra[name]...)
		}
	}
	return string(key)
}

var (
	_ services.Authz      = (*Decisions)(nil)
	_ services.AuthzBatch = (*Decisions)(nil)
)
