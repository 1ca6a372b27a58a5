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
	// time in which the front door does not learn of changes although authz does.
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
	name := a.Name
	a.Name = ""
	key := decisionKey(a, true)
	a.Name = name
	if len(key) > maxDecisionKey {
		return d.Authz.Authorize(ctx, a)
	}
	now := time.Now()
	if known, ok := d.recall(key, now); ok {
		return known, nil
	}
	exact := decisionKey(a, false)
	if known, ok := d.recall(exact, now); ok {
		return known, nil
	}
	decision, err := d.Authz.Authorize(ctx, a)
	if err != nil || !decision.Allowed || decision.Revision <= 0 || len(exact) > maxDecisionKey {
		return decision, err
	}
	if !decision.AnyName {
		key = exact
	}
	d.known.Add(key, allowed{decision, now.Add(decisionLifetime)})
	return decision, nil
}

func (d *Decisions) recall(key string, now time.Time) (services.Decision, bool) {
	known, ok := d.known.Get(key)
	return known.Decision, ok && now.Before(known.until) && d.unchanged(known.Revision)
}

// decisionKey identifies a request for authorization, or all that differ only in the name.
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

var _ services.Authz = (*Decisions)(nil)
