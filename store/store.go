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
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
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

// Config configures a Store.
type Config struct {
	Client *clientv3.Client
	// Values encrypts what is stored; nil for no encryption.
	Values  *atrest.Values
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// EventTTL is how long an Event is stored after it was written; 0 for ever.
	EventTTL time.Duration
	// FutureWait is how long a read waits for a future revision; zero selects the
	// default.
	FutureWait time.Duration
	// SettleWithin bounds the search for the outcome of a write whose response from
	// etcd was lost; zero selects the default.
	SettleWithin time.Duration
}

// Store implements services.Store over etcd. Run keeps it current.
type Store struct {
	client     *clientv3.Client
	codec      object.Codec
	mirror     *mirror.Mirror
	swaps      *swap.Swapper
	metrics    *metrics
	futureWait time.Duration
	eventTTL   time.Duration
}

// New returns a Store. The caller must call Run, and wait for Ready.
func New(c Config) *Store {
	if c.FutureWait == 0 {
		c.FutureWait = defaultFutureWait
	}
	codec := object.Codec{Values: c.Values}
	m := mirror.New(mirror.Config{Client: c.Client, Codec: codec, Log: c.Log})
	s := &Store{client: c.Client, codec: codec, mirror: m, metrics: newMetrics(c.Metrics, m), futureWait: c.FutureWait, eventTTL: c.EventTTL}
	s.swaps = swap.New(swap.Config{
		Client: c.Client, Time: s.metrics.timeEtcd, Within: c.SettleWithin,
		Reached: func() int64 { return m.Status().Revision },
		WriteID: codec.WriteID,
		Bound:   m.Contact().Bound, Away: func() error { return s.away("write") },
	})
	return s
}

// Run follows etcd until ctx ends. It must be called once.
func (s *Store) Run(ctx context.Context) error {
	defer s.swaps.Stop()
	return s.mirror.Run(ctx)
}

// Ready returns a channel that is closed when the store has loaded all objects.
func (s *Store) Ready() <-chan struct{} { return s.mirror.Filled() }

// Get implements services.Reader.
func (s *Store) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
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

// readable reads an object that the mirror could not decrypt. It returns InternalError (500)
// if it still cannot be decrypted.
func (s *Store) readable(ctx context.Context, key resource.Key) (services.Object, error) {
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
		s.mirror.Decrypted(&o)
	}
	return o, err
}

// away returns contact.ErrAway while etcd is unavailable, and counts the request as
// refused.
func (s *Store) away(operation string) error {
	err := s.mirror.Contact().Err()
	if err != nil {
		s.metrics.refused.WithLabelValues(operation).Inc()
	}
	return err
}

// Revision implements services.Reader.
func (s *Store) Revision(ctx context.Context) (int64, error) {
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

// Heads implements services.HeadReader.
func (s *Store) Heads(ctx context.Context, types []resource.GroupResource) (services.Heads, error) {
	for {
		if _, err := s.read(ctx, services.Read{}); err != nil {
			return services.Heads{}, err
		}
		if heads, ok := s.mirror.Heads(types); ok {
			return heads, nil
		}
	}
}

// read returns a snapshot that satisfies r, whose mode is not Exact.
func (s *Store) read(ctx context.Context, r services.Read) (*mirror.Snapshot, error) {
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
func (s *Store) catchUp(ctx context.Context) error {
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
		return services.Timeout("the store has not caught up with etcd in time: it is at revision %d of %d", s.mirror.Status().Revision, revision)
	}
}

// get reads from etcd. It returns contact.ErrAway while etcd is unavailable.
func (s *Store) get(ctx context.Context, operation, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := s.away("read"); err != nil {
		return nil, err
	}
	ctx, cancel := s.mirror.Contact().Bound(ctx)
	defer cancel()
	ctx, done := s.metrics.timeEtcd(ctx, operation)
	answer, err := s.client.Get(ctx, key, options...)
	done(err)
	if err != nil && errors.Is(context.Cause(ctx), contact.ErrAway) {
		return nil, contact.ErrAway
	}
	return answer, err
}

// reach waits up to FutureWait for the requested revision.
func (s *Store) reach(ctx context.Context, revision int64) error {
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
func (s *Store) filled(ctx context.Context) error {
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
func (s *Store) following(context.Context) error {
	if err := s.mirror.Broken(); err != nil {
		return err
	}
	if since := s.mirror.Status().Stalled; !since.IsZero() && time.Since(since) > stallGrace {
		return fmt.Errorf("not following etcd since %s", since.Format(time.RFC3339))
	}
	return nil
}

var (
	_ services.Store      = (*Store)(nil)
	_ services.HeadReader = (*Store)(nil)
)
