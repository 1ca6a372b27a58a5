package frontdoor

import (
	"cmp"

	"github.com/portico-platform/portico/frontdoor/internal/backends"
	"github.com/portico-platform/portico/frontdoor/internal/http/authfilters"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/live"
	"github.com/portico-platform/portico/frontdoor/internal/http/permitted"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run"
)

// newAccess builds what decides who may make a request, and for how long.
func (c *config) newAccess(n *run.Node, b backends.Services) *authfilters.Control {
	identities := live.NewIdentities(b.Authn)
	running := live.NewRequests(live.Config{Authn: b.Authn, Authz: b.Authz, Forbidden: authfilters.Forbidden, Log: n.Log, Metrics: n.Metrics})
	access := &authfilters.Control{Authn: b.Authn, Authz: b.Decisions, Identities: identities, LongRunning: running, Vocabulary: n.Vocabulary, Log: n.Log,
		Namespaces:      permitted.New(permitted.Config{Authz: b.Decisions, Store: b.Store, Policy: b.Policy()}),
		CreateToConnect: n.Gates.On(featuregate.CreateToConnect), Constrained: authfilters.NewConstrained(n.Gates.On(featuregate.ConstrainedImpersonation), n.Metrics), HealthOpened: make(chan struct{}, 1)}
	access.Limit(authfilters.Limits{Reads: c.reads, Writes: c.writes, Connections: c.connections.Inflight, Watches: cmp.Or(c.watches, inflight.WatchShare(n.Memory.Limit())), Fair: c.fairness, Timeout: c.requestTimeout, Memory: n.Ledger}, n.Metrics)
	n.Go("access to health checks", access.FollowHealth)
	n.Go("checking long-running requests", running.Run)
	b.Follow(n, backends.Observers{
		Policy:  []changes.Observer{running.PolicyChanged},
		Bound:   []changes.Observer{identities.ObjectsChanged, running.ObjectsChanged},
		Revoked: []changes.Observer{identities.Revoked, running.Revoked},
	})
	return access
}
