package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/contact"
	"github.com/portico-platform/portico/store/internal/mirror"
	"github.com/portico-platform/portico/store/internal/object"
	"github.com/portico-platform/portico/store/internal/swap"
)

const (
	// defaultFutureWait is how long a read waits for the requested revision, which the
	// client may have received from a replica that is ahead of this one.
	defaultFutureWait = 3 * time.Second
	// catchUpWait bounds how long a read waits for etcd's newest revision.
	catchUpWait = 30 * time.Second
	// stallGrace is how long the mirror may not follow etcd before it is unhealthy.
	stallGrace = 5 * time.Second
)

// cluster reads and writes the objects of one etcd cluster. Revisions are those of the cluster.
type cluster struct {
	name       string // of an override; empty for the cluster of all other types
	client     *clientv3.Client
	log        *slog.Logger
	codec      object.Codec
	mirror     *mirror.Mirror
	swaps      *swap.Swapper
	metrics    *metrics
	futureWait time.Duration
	eventTTL   time.Duration
}

// newCluster returns the cluster of a client.
func newCluster(c Config, name string, client *clientv3.Client, registry prometheus.Registerer) *cluster {
	log := c.Log
	if name != "" {
		log = log.With("etcd", name)
	}
	codec := object.Codec{Values: c.Values}
	m := mirror.New(mirror.Config{Client: client, Codec: codec, Log: log})
	s := &cluster{name: name, client: client, log: log, codec: codec, mirror: m, metrics: newMetrics(registry, m), futureWait: c.FutureWait, eventTTL: c.EventTTL}
	s.swaps = swap.New(swap.Config{
		Client: client, Time: s.metrics.timeEtcd, Within: c.SettleWithin,
		Reached: func() int64 { return m.Status().Revision },
		WriteID: codec.WriteID,
		Bound:   m.Contact().Bound, Away: func() error { return s.away("write") }, Heard: m.Contact().Heard,
	})
	return s
}

// run follows etcd until ctx ends.
func (s *cluster) run(ctx context.Context) {
	defer s.swaps.Stop()
	_ = s.mirror.Run(ctx) // always nil
}

// Get is Store.Get.
func (s *cluster) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	if r.Read.Mode == services.Exact {
		return services.Object{}, services.BadRequest("one object cannot be read at an exact revision")
	}
	snapshot, err := s.read(ctx, r.Read)
	if err != nil {
		return services.Object{}, err
	}
	o, ok := snapshot.Get(r.Key.Path())
	if !ok {
		return services.Object{}, notFound(r.Key)
	}
	if object.Unreadable(o) {
		return s.readable(ctx, r.Key)
	}
	return *o, nil
}

// readable reads an object that the mirror could not read. It returns Unreadable (500) if that is
// still so.
func (s *cluster) readable(ctx context.Context, key resource.Key) (services.Object, error) {
	path := key.Path()
	answer, err := s.get(ctx, "get", path)
	switch {
	case err != nil:
		return services.Object{}, failure(err)
	case len(answer.Kvs) == 0:
		return services.Object{}, notFound(key)
	}
	o, err := s.decode(path, answer.Kvs[0], answer.Kvs[0].ModRevision)
	if err == nil {
		s.mirror.Read(&o)
	}
	return o, err
}

// away returns contact.ErrAway while etcd is unavailable, and counts the request as
// refused.
func (s *cluster) away(operation string) error {
	err := s.mirror.Contact().Err()
	if err != nil {
		s.metrics.refused.WithLabelValues(operation).Inc()
	}
	return err
}

// Revision returns etcd's newest revision.
func (s *cluster) Revision(ctx context.Context) (int64, error) {
	if err := s.away("read"); err != nil {
		return 0, failure(err)
	}
	ctx, span := tracing.StartCall(ctx, "etcd", "revision")
	revision, err := s.mirror.Latest(ctx)
	span.End(err)
	if err != nil {
		return 0, failure(err)
	}
	return revision, nil
}

// headsAt sets the heads at some positions to those of the types there, which are of this cluster.
func (s *cluster) headsAt(ctx context.Context, types []resource.GroupResource, at []int, heads []services.Head) error {
	chosen := make([]resource.GroupResource, len(at))
	for n, i := range at {
		chosen[n] = types[i]
	}
	for {
		if _, err := s.read(ctx, services.Read{}); err != nil {
			return err
		}
		if found, ok := s.mirror.Heads(chosen); ok {
			for n, i := range at {
				heads[i] = found[n]
			}
			return nil
		}
	}
}

// read returns a snapshot that satisfies r, whose mode is not Exact.
func (s *cluster) read(ctx context.Context, r services.Read) (*mirror.Snapshot, error) {
	var err error
	switch r.Mode {
	case services.MostRecent:
		err = s.catchUp(ctx)
	case services.NotOlderThan:
		err = s.reach(ctx, r.Revision)
	}
	for err == nil {
		if err = s.filled(ctx); err == nil {
			if snapshot, ok := s.mirror.Held(); ok {
				return snapshot, nil
			}
		}
	}
	return nil, err
}

// catchUp waits until the mirror holds everything that etcd had acknowledged before the
// call.
func (s *cluster) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpWait)
	defer cancel()
	for {
		revision, err := s.Revision(ctx)
		if err != nil {
			return err
		}
		err = s.mirror.Wait(ctx, revision)
		if err == nil {
			return nil
		}
		switch {
		case errors.Is(err, mirror.ErrBroken):
			continue // etcd was restored: its newest revision has changed
		case errors.Is(err, contact.ErrAway):
			return failure(err)
		}
		return services.Timeout("the store did not catch up with etcd in time: it is at revision %d of %d", s.mirror.Status().Revision, revision)
	}
}

// get reads from etcd. It returns contact.ErrAway while etcd is unavailable.
func (s *cluster) get(ctx context.Context, operation, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := s.away("read"); err != nil {
		return nil, err
	}
	ctx, cancel := s.mirror.Contact().Bound(ctx)
	defer cancel()
	ctx, done := s.metrics.timeEtcd(ctx, operation)
	answer, err := s.client.Get(ctx, key, options...)
	done(err)
	switch {
	case err == nil:
		s.mirror.Contact().Heard()
	case errors.Is(context.Cause(ctx), contact.ErrAway):
		return nil, contact.ErrAway
	}
	return answer, err
}

// reach waits up to FutureWait for the requested revision.
func (s *cluster) reach(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.futureWait)
	defer cancel()
	switch err := s.mirror.Wait(ctx, revision); {
	case errors.Is(err, contact.ErrAway):
		return failure(err)
	case err != nil:
		return services.FutureRevision(revision, s.mirror.Status().Revision)
	}
	return nil
}

// filled waits for the first load.
func (s *cluster) filled(ctx context.Context) error {
	select {
	case <-s.mirror.Filled():
		return nil
	default:
	}
	select {
	case <-s.mirror.Filled():
		return nil
	case <-s.mirror.Contact().Away():
		return failure(contact.ErrAway)
	case <-ctx.Done():
		return services.Unavailable("the store has not loaded its objects from etcd yet")
	}
}

// following returns an error if the mirror has not followed etcd for stallGrace, or if
// etcd was restored and the mirror has not reloaded yet.
func (s *cluster) following(context.Context) error {
	if err := s.mirror.Broken(); err != nil {
		return err
	}
	if since := s.mirror.Status().Stalled; !since.IsZero() && time.Since(since) > stallGrace {
		return fmt.Errorf("not following etcd since %s", since.Format(time.RFC3339))
	}
	return nil
}
