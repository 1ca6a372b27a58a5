package watchhub

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/watch-hub/internal/keys"
)

// Service returns the watch hub as a service of a process.
func Service() run.Service {
	return run.Service{
		Name:   "watch-hub",
		About:  "follows etcd, publishes every change on NATS, replays and compacts history",
		Offers: []run.Dependency{contract.WatchHub},
		Needs:  []run.Dependency{etcd.Client, etcd.Overrides, bus.Conn},
		Flags:  flags,
		Start:  start,
	}
}

func flags(fs *pflag.FlagSet) {
	atrest.Flags(fs)
	fs.Duration("watch-history", 5*time.Minute, "how long watches can be resumed and lists continued at least; what is still in memory is served for some minutes")
	fs.Duration("etcd-compaction-interval", 0, "minimum time between compactions of etcd, which then holds up to this time more than --watch-history; 0 turns them off; if the flag is absent, a tenth of --watch-history")
	fs.Int64("watch-history-bytes", 32<<20, "bytes of history to keep in memory; older changes are read from etcd")
	fs.Duration("bus-key-lifetime", 24*time.Hour, "how often the key that encrypts changes on NATS is replaced;  deleting "+keys.Path+" in etcd replaces it at once")
	fs.String("watch-hub-name", "", "unique name of this watch hub (default: the host name)")
}

func start(ctx context.Context, n *run.Node) error {
	config, err := configure(n)
	if err != nil {
		return err
	}
	if config.Values, err = atrest.Start(ctx, n); err != nil {
		return err
	}
	if config.Etcd, err = etcd.Client.Use(ctx, n); err != nil {
		return err
	}
	if config.Overrides, err = etcd.Overrides.Use(ctx, n); err != nil {
		return err
	}
	if config.Bus, err = bus.Conn.Use(ctx, n); err != nil {
		return err
	}
	hub := New(config)
	n.Go("hub", hub.Run)
	observe(n, hub)
	select {
	case <-hub.Ready():
	case <-ctx.Done():
		return ctx.Err()
	}
	contract.WatchHub.Offer(n, hub)
	return nil
}

// compactEvery returns the Config.CompactEvery of the flag.
func compactEvery(n *run.Node) (time.Duration, error) {
	every, _ := n.Flags.GetDuration("etcd-compaction-interval")
	switch {
	case !n.Flags.Changed("etcd-compaction-interval"):
		return 0, nil
	case every == 0:
		return -1, nil
	case every < time.Second:
		return 0, run.Usagef("--etcd-compaction-interval: %v is neither 0 nor at least a second", every)
	}
	return every, nil
}

func configure(n *run.Node) (Config, error) {
	config := Config{Log: n.Log, Tracer: n.Tracer}
	config.History, _ = n.Flags.GetDuration("watch-history")
	var err error
	if config.CompactEvery, err = compactEvery(n); err != nil {
		return config, err
	}
	config.WindowBytes, _ = n.Flags.GetInt64("watch-history-bytes")
	config.KeyLifetime, _ = n.Flags.GetDuration("bus-key-lifetime")
	config.Name, _ = n.Flags.GetString("watch-hub-name")
	if config.History < time.Second {
		return config, run.Usagef("--watch-history: %v is less than a second", config.History)
	}
	if config.KeyLifetime < keys.Overlap {
		return config, run.Usagef("--bus-key-lifetime: %v is less than %v", config.KeyLifetime, keys.Overlap)
	}
	if config.WindowBytes < 0 {
		return config, run.Usagef("--watch-history-bytes: %d is negative", config.WindowBytes)
	}
	if config.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return config, run.Usagef("--watch-hub-name is needed, because the host has no name: %v", err)
		}
		config.Name = name
	}
	return config, nil
}

var errLagging = errors.New("etcd has been silent for too long")

// observe registers the health checks and metrics of the hub.
func observe(n *run.Node, hub *Hub) {
	n.Health.Add(run.Check{Name: "bus-keys", Probe: func(context.Context) error {
		if hub.keys.Current() == nil {
			return keys.ErrNotReady
		}
		return nil
	}})
	n.Metrics.MustRegister(gauge("publishes", "1 when this hub is the one that publishes", func() float64 {
		if hub.election.leads() {
			return 1
		}
		return 0
	}))
	registry := func(name string) prometheus.Registerer {
		return prometheus.WrapRegistererWith(prometheus.Labels{"etcd": name}, n.Metrics)
	}
	hub.main.observe(n, registry("main"))
	for _, one := range hub.apart {
		one.observe(n, registry(one.name))
	}
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "portico", Subsystem: "watchhub", Name: name, Help: help}, value)
}

// observe registers the health check and metrics of one follower. That of an override concerns a
// part of the objects, and does not make the hub unready.
func (f *follower) observe(n *run.Node, registry prometheus.Registerer) {
	suffix := ""
	if f.name != "" {
		suffix = "-" + f.name
	}
	n.Health.Add(run.Check{Name: "watch-hub" + suffix, Partial: f.name != "", Probe: func(context.Context) error {
		if err := f.keeper.Broken(); err != nil {
			return err
		}
		if f.Heard() > lagging {
			return errLagging
		}
		return nil
	}})
	n.Memory.Add("watch-hub-window"+suffix, f.window)
	registry.MustRegister(
		gauge("window_changes", "changes held in memory", func() float64 { changes, _ := f.window.Held(); return float64(changes) }),
		gauge("window_bytes", "bytes of the changes held in memory", func() float64 { _, bytes := f.window.Held(); return float64(bytes) }),
		gauge("revision", "revision that the hub has seen", func() float64 { _, through := f.window.Span(); return float64(through) }),
	)
}
