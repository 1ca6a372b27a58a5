package frontdoor

import (
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/backends"
	"github.com/portico-platform/portico/frontdoor/internal/http/authfilters"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/live"
	"github.com/portico-platform/portico/services/kit/run"
)

const (
	// seatWait is how long a request may wait for a seat.
	seatWait = 30 * time.Second
	// requestMemory bounds the total bytes of request bodies and stalled responses.
	requestMemory = 256 << 20
)

// newAccess builds what decides who may make a request, and for how long.
func (c *config) newAccess(n *run.Node, b backends.Services) *authfilters.Control {
	identities := live.NewIdentities(b.Authn)
	running := live.NewRequests(live.Config{Authn: b.Authn, Authz: b.Authz, Forbidden: authfilters.Forbidden, Log: n.Log, Metrics: n.Metrics})
	access := &authfilters.Control{Authn: b.Authn, Authz: b.Decisions, Identities: identities, LongRunning: running, Vocabulary: n.Vocabulary, Log: n.Log,
		Reads: inflight.New(c.reads, seatWait), Writes: inflight.New(c.writes, seatWait),
		Connections: inflight.New(c.connections.Inflight, seatWait), Memory: inflight.NewBytes(requestMemory),
		HealthOpened: make(chan struct{}, 1)}
	inflight.Register(n.Metrics, map[string]*inflight.Limiter{"readOnly": access.Reads, "mutating": access.Writes, "connect": access.Connections}, access.Memory)
	n.Go("access to health checks", access.FollowHealth)
	n.Go("checking long-running requests", running.Run)
	b.Follow(n, running.PolicyChanged, identities.ObjectsChanged, running.ObjectsChanged)
	return access
}
