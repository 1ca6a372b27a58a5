// Package history reads changes from etcd: live and from the past, until that
// is compacted.
//
// It decides how a revision of etcd becomes a Change, with the object before it,
// and what "seen through" means. It never writes, keeps nothing and does not know
// the bus. It serves "Watch procedure" and "Persistence" of the specification.
package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/resource"
)

// firstProgress is how soon a new watch asks for its progress; the pause then
// doubles up to the one that was asked for, so that a quiet start is known soon.
const firstProgress = 2 * time.Millisecond

// Compacted says that etcd no longer has what was asked for.
type Compacted struct {
	// Through is the revision up to which history is gone.
	Through int64
}

// Error says through where.
func (c Compacted) Error() string { return fmt.Sprintf("history is compacted through %d", c.Through) }

// errPrevious stands for an event whose object before it is compacted already.
var errPrevious = errors.New("the previous state of an object is no longer held")

// ErrLarge says that there is more than was asked for.
var ErrLarge = errors.New("more history than was asked for")

var errEnded = errors.New("etcd ended a watch")

// Reader reads etcd's history.
type Reader struct {
	client *clientv3.Client
	log    *slog.Logger
	pasts  chan struct{} // places for reading the past
}

// concurrentPasts is how many runs of the past are read from etcd at the same time.
// etcd reads all changes after a revision into memory, however few are asked for:
// many clients that resume old watches must not multiply that.
const concurrentPasts = 2

// NewReader returns a reader.
func NewReader(client *clientv3.Client, log *slog.Logger) *Reader {
	return &Reader{client: client, log: log, pasts: make(chan struct{}, concurrentPasts)}
}

// Run is a part of history.
type Run struct {
	// Changes have no Previous yet.
	Changes []services.Change
	// Through is the revision up to which everything has been seen.
	Through int64
}

// Watch follows everything below a prefix after a revision, from the past into
// the present, and asks etcd at least every so often how far it has come.
// Responses go through Read. The watch ends with ctx.
func (r *Reader) Watch(ctx context.Context, prefix string, after int64, every time.Duration) clientv3.WatchChan {
	ctx = etcd.OwnStream(clientv3.WithRequireLeader(ctx))
	responses := r.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithRev(after+1), clientv3.WithFragment())
	go r.askProgress(ctx, every)
	return responses
}

func (r *Reader) askProgress(ctx context.Context, every time.Duration) {
	timer := time.NewTimer(firstProgress)
	defer timer.Stop()
	for pause := firstProgress; ; {
		select {
		case <-timer.C:
			if err := r.client.RequestProgress(ctx); err != nil && ctx.Err() == nil {
				r.log.Debug("asking etcd for progress", "error", err)
			}
			pause = min(2*pause, every)
			timer.Reset(pause)
		case <-ctx.Done():
			return
		}
	}
}

// Read makes a Run of a response. The error is Compacted when history is gone.
func (r *Reader) Read(response clientv3.WatchResponse) (Run, error) {
	if response.CompactRevision != 0 {
		return Run{}, Compacted{Through: response.CompactRevision}
	}
	if err := response.Err(); err != nil {
		return Run{}, err
	}
	if response.IsProgressNotify() {
		return Run{Through: response.Header.Revision}, nil
	}
	var run Run
	for _, event := range response.Events {
		run.Through = event.Kv.ModRevision
		change, err := decode(event)
		switch {
		case errors.Is(err, errPrevious):
			return Run{}, Compacted{Through: event.Kv.ModRevision}
		case err != nil:
			// Nobody can be told of an object that cannot be read.
			r.log.Error("unreadable value in etcd", "key", string(event.Kv.Key), "revision", event.Kv.ModRevision, "error", err)
		default:
			run.Changes = append(run.Changes, change)
		}
	}
	return run, nil
}

// Past returns changes of one type in (after, through], the first n of them at
// least as far as they fit into bytes. The error is Compacted when not all of
// them are held.
func (r *Reader) Past(ctx context.Context, q Query) (Run, error) {
	return r.past(ctx, q.GroupResource.Path(), q)
}

// Between returns the changes of all types in (q.After, q.Through]. The error is
// Compacted when not all of them are held, and ErrLarge when they are more than
// q.Limit or q.Bytes.
func (r *Reader) Between(ctx context.Context, q Query) (Run, error) {
	run, err := r.past(ctx, resource.Root, q)
	if err == nil && run.Through < q.Through {
		return Run{}, ErrLarge
	}
	return run, err
}

func (r *Reader) past(ctx context.Context, prefix string, q Query) (Run, error) {
	select {
	case r.pasts <- struct{}{}:
		defer func() { <-r.pasts }()
	case <-ctx.Done():
		return Run{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var past Run
	var bytes int
	for response := range r.Watch(ctx, prefix, q.After, 50*time.Millisecond) {
		run, err := r.Read(response)
		if err != nil {
			return Run{}, err
		}
		for _, c := range run.Changes {
			if c.Object.Revision > q.Through {
				past.Through = q.Through
				return past, r.held(ctx, q.After)
			}
			past.Changes = append(past.Changes, c)
			past.Through = c.Object.Revision
			bytes += len(c.Object.JSON)
			if len(past.Changes) >= q.Limit || bytes >= q.Bytes {
				return past, r.held(ctx, q.After)
			}
		}
		if run.Through >= q.Through {
			past.Through = q.Through
			return past, r.held(ctx, q.After)
		}
	}
	return Run{}, errEnded
}

// Query asks for the changes of one type, or of all, in (After, Through], until
// there are Limit of them or Bytes are exceeded.
type Query struct {
	GroupResource  resource.GroupResource
	After, Through int64
	Limit, Bytes   int
}

// held returns Compacted when the state at a revision is gone: then deletions
// right after it may be missing without a sign from a watch.
func (r *Reader) held(ctx context.Context, revision int64) error {
	_, err := r.client.Get(ctx, resource.Root, clientv3.WithRev(max(revision, 1)), clientv3.WithCountOnly())
	if errors.Is(err, rpctypes.ErrCompacted) {
		return Compacted{Through: revision + 1}
	}
	return err
}

// decode makes a Change of an event.
func decode(event *clientv3.Event) (services.Change, error) {
	key, err := resource.ParsePath(string(event.Kv.Key))
	if err != nil {
		return services.Change{}, err
	}
	if event.IsCreate() {
		object, err := decodeObject(key, event.Kv, event.Kv.ModRevision)
		return services.Change{Type: services.Added, Object: object}, err
	}
	if event.PrevKv == nil {
		return services.Change{}, errPrevious
	}
	if event.Type == mvccpb.Event_DELETE {
		object, err := decodeObject(key, event.PrevKv, event.Kv.ModRevision)
		return services.Change{Type: services.Deleted, Object: object, OldLabels: object.Labels, OldFields: object.Fields}, err
	}
	old, err := resource.DecodeRecord(event.PrevKv.Value)
	if err != nil {
		return services.Change{}, err
	}
	object, err := decodeObject(key, event.Kv, event.Kv.ModRevision)
	change := services.Change{Type: services.Modified, Object: object, OldLabels: old.Labels, OldFields: old.Fields}
	if !maps.Equal(old.Labels, object.Labels) || !maps.Equal(old.Fields, object.Fields) {
		change.OldJSON = resource.SpliceResourceVersion(old.JSON, old.At, event.Kv.ModRevision)
	}
	return change, err
}

func decodeObject(key resource.Key, kv *mvccpb.KeyValue, revision int64) (services.Object, error) {
	record, err := resource.DecodeRecord(kv.Value)
	if err != nil {
		return services.Object{}, err
	}
	return services.Object{
		Key: key, Revision: revision, UID: record.UID,
		JSON:   resource.SpliceResourceVersion(record.JSON, record.At, revision),
		Labels: record.Labels, Fields: record.Fields,
	}, nil
}
