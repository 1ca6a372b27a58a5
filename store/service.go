// Package store is the service that stores the objects of the API in etcd, with one
// transaction per write, and serves reads from a mirror in memory.
//
// It implements read consistency, lists and optimistic concurrency. It does not parse
// objects, has no resource types, and does not publish changes, which the watch hub does.
// It serves "Persistence", "Read consistency" and "Chunked lists" of the specification.
package store

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/run"
)

// patience is how long the first load may take before a warning is logged.
const patience = 5 * time.Second

// Service returns the store as a service.
func Service() run.Service {
	return run.Service{
		Name:   "store",
		About:  "stores objects in etcd and serves reads from memory",
		Offers: []run.Dependency{contract.Store},
		Needs:  []run.Dependency{etcd.Client, etcd.Overrides},
		Flags:  flags,
		Start:  start,
	}
}

// flagTTL names the time that Events are stored.
const flagTTL = "event-ttl"

func flags(fs *pflag.FlagSet) {
	atrest.Flags(fs)
	fs.Duration(flagTTL, time.Hour, "how long an Event is stored after its last write, at least 2s; 0 for no limit")
}

// eventTTL returns the value of the flag. etcd has no shorter leases than some seconds.
func eventTTL(n *run.Node) (time.Duration, error) {
	ttl, err := n.Flags.GetDuration(flagTTL)
	if err == nil && ttl != 0 && ttl < 2*time.Second {
		err = run.Usagef("--%s: %s is neither 0 nor at least 2s", flagTTL, ttl)
	}
	return ttl, err
}

func start(ctx context.Context, n *run.Node) error {
	ttl, err := eventTTL(n)
	if err != nil {
		return err
	}
	client, err := etcd.Client.Use(ctx, n)
	if err != nil {
		return err
	}
	overrides, err := etcd.Overrides.Use(ctx, n)
	if err != nil {
		return err
	}
	values, err := atrest.Start(ctx, n)
	if err != nil {
		return err
	}
	s := New(Config{Client: client, Overrides: overrides, Values: values, EventTTL: ttl, Log: n.Log, Metrics: n.Metrics})
	n.Go("mirror", s.Run)
	if err := s.awaitReady(ctx, n); err != nil {
		return err
	}
	s.main.observe(n)
	s.observeUnreadable(n)
	for _, one := range s.apart {
		one.observe(n)
	}
	if len(s.apart) > 0 {
		s.watchPlacement(n)
	}
	contract.Store.Offer(n, s)
	status := s.main.mirror.Status()
	n.Log.Info("store is ready", "objects", status.Objects, "revision", status.Revision)
	return nil
}

// observe registers the health checks of a cluster. As in Kubernetes, etcd-readiness reads from etcd;
// who connects to etcd registers the check etcd. Those of an override concern a part of the
// objects, and do not make the store unready.
func (s *cluster) observe(n *run.Node) {
	suffix := ""
	if s.name != "" {
		suffix = "-" + s.name
	}
	add := func(name string, probe func(context.Context) error) {
		n.Health.Add(run.Check{Name: name + suffix, Partial: s.name != "", Probe: probe})
	}
	add("etcd-readiness", func(ctx context.Context) error {
		_, err := s.Revision(ctx)
		return err
	})
	add("store-mirror", s.following)
	if s.client.ActiveConnection() != nil { // the embedded etcd registers its own checks
		alarms := &alarms{client: s.client, log: s.log}
		add("etcd-alarms", alarms.probe)
		s.metrics.observe(alarms)
		n.Go("etcd-alarms"+suffix, alarms.watch)
	}
}

// awaitReady waits for the first load, and logs a warning if it takes longer than patience.
func (s *Store) awaitReady(ctx context.Context, n *run.Node) error {
	slow := time.NewTimer(patience)
	defer slow.Stop()
	for {
		select {
		case <-s.Ready():
			return nil
		case <-slow.C:
			n.Log.Warn("still loading all objects from etcd")
		case <-ctx.Done():
			return fmt.Errorf("loading all objects from etcd: %w", ctx.Err())
		}
	}
}
