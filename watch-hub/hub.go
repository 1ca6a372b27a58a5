// Package watchhub is the service that publishes changes: it follows etcd, publishes
// every change once on the bus, keeps a window of recent changes in memory, answers
// replays, and compacts etcd's history behind the window.
//
// It decides what history is kept and which of several hubs publishes. It never changes
// objects and does not know who watches. It serves "Watch procedure", "Events" and
// "Persistence" of the specification.
package watchhub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/keys"
)

// Config configures a Hub. All fields but Overrides, Values, CompactEvery and Tracer are
// required.
type Config struct {
	// Etcd is the cluster of all types without an override. It also has the bus keys and the
	// name of the hub that publishes.
	Etcd      *clientv3.Client
	Overrides []etcd.Override
	// Values decrypts objects; nil if they are not encrypted.
	Values *atrest.Values
	Bus    *nats.Conn
	// Name identifies the hub. It takes over at once from a predecessor of the same
	// name.
	Name string
	// History is how long changes can be replayed and lists continued.
	History time.Duration
	// CompactEvery is the minimum time between compactions of etcd; 0 for as often as there
	// are marks, which is marksPerHistory times per History. Less than 0 is never.
	CompactEvery time.Duration
	// WindowBytes bounds the window of each cluster in memory; older changes come from etcd.
	WindowBytes int64
	// KeyLifetime is how often the key of the bus is replaced.
	KeyLifetime time.Duration
	Log         *slog.Logger
	// Tracer continues the traces of writes; nil for none.
	Tracer *tracing.Tracer
}

// Hub implements services.WatchHub. Each etcd cluster has a follower.
type Hub struct {
	config   Config
	beats    *heartbeats
	election *election
	keys     *keys.Keys
	main     *follower
	// apart are the followers of overrides, and of has them by type.
	apart []*follower
	of    map[resource.GroupResource]*follower
}

// New returns a hub. It does nothing until it runs.
func New(config Config) *Hub {
	h := &Hub{config: config, of: map[resource.GroupResource]*follower{}}
	h.keys = keys.New(config.Etcd, config.KeyLifetime, config.Log)
	h.beats = newHeartbeats(config.Bus, h.keys.Current, config.Log)
	h.election = newElection(config.Etcd, h.beats, config.Name, config.Log)
	shared := shared{config: config, keys: h.keys, election: h.election}
	main := etcd.Override{Client: config.Etcd}
	var types []resource.GroupResource
	for _, o := range config.Overrides {
		one := newFollower(shared, o, progressOf{only: o.Types})
		h.apart = append(h.apart, one)
		for _, gr := range o.Types {
			h.of[gr] = one
		}
		types = append(types, o.Types...)
	}
	h.main = newFollower(shared, main, progressOf{except: types})
	h.main.again = h.election.again
	return h
}

// followerOf returns the follower of the cluster that stores a type.
func (h *Hub) followerOf(gr resource.GroupResource) *follower {
	if one, ok := h.of[gr]; ok {
		return one
	}
	return h.main
}

// Ready returns a channel that is closed when the hub knows the present of all types but those
// of overrides. Changes before its start are replayed from etcd until the window has been
// filled with them.
func (h *Hub) Ready() <-chan struct{} { return h.main.ready }

// Run runs the hub until ctx ends, and then returns nil.
func (h *Hub) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for _, one := range append([]*follower{h.main}, h.apart...) {
		loops.Go(func() { one.run(ctx) })
	}
	won := h.election.won()
	loops.Go(func() { h.recordOverrides(ctx, won) })
	loops.Go(func() { h.keys.Run(ctx) })
	loops.Go(func() { h.beats.exchange(ctx) })
	loops.Go(func() {
		// Without these it has nothing to publish, or no key to seal it with.
		for _, ready := range []<-chan struct{}{h.Ready(), h.keys.Ready()} {
			select {
			case <-ready:
			case <-ctx.Done():
				return
			}
		}
		h.election.run(ctx)
	})
	loops.Wait()
	return nil
}

// recordOverrides records the overrides in the main etcd after each won election, until ctx ends: of hubs with
// different flags, as during a change of them, the one that publishes counts.
func (h *Hub) recordOverrides(ctx context.Context, won <-chan struct{}) {
	for {
		select {
		case <-won:
		case <-ctx.Done():
			return
		}
		for h.election.leads() {
			err := etcd.Record(ctx, h.config.Etcd, h.config.Overrides)
			if err == nil || ctx.Err() != nil {
				break
			}
			h.config.Log.Warn("which resources are in other etcds is not recorded, retrying", "error", err)
			retry.Pause(ctx, retryEvery)
		}
	}
}

// Replay implements services.WatchHub.
func (h *Hub) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	return h.followerOf(r.GroupResource).Replay(ctx, r)
}

var _ services.WatchHub = (*Hub)(nil)
