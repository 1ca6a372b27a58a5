// Package history reads current and past changes from etcd, unless they are compacted, and
// converts etcd's events to Changes, with the labels, fields and state before. It never
// writes and has no cache. It serves "Watch procedure" and "Persistence" of the
// specification.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/etcd/decoded"
	"github.com/portico-platform/portico/services/kit/etcd/epoch"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/stored"
	"github.com/portico-platform/portico/services/tree"
)

// firstProgress is the delay of a new watch's first progress request, so that a watch
// without events is known to be complete soon. The interval then doubles up to the
// requested one.
const firstProgress = 2 * time.Millisecond

// Compacted means that etcd no longer has the requested history.
type Compacted struct {
	// Through is the revision up to which history is compacted.
	Through int64
}

// Error returns the message with Through.
func (c Compacted) Error() string { return fmt.Sprintf("history is compacted through %d", c.Through) }

// errPrevious means that the state before an event is compacted.
var errPrevious = errors.New("the previous state of an object is compacted")

// errForeign means that another etcd stores objects of the type.
var errForeign = errors.New("the type of the object is stored in another etcd")

// ErrLarge means that the history exceeds the limits of the query.
var ErrLarge = errors.New("more history than requested")

var errEnded = errors.New("etcd ended a watch")

// Reader reads etcd's history.
type Reader struct {
	// Owns reports whether changes of a type count: etcd may hold objects of types that another
	// one stores. Nil for all types. It must be set before the first read.
	Owns func(resource.GroupResource) bool
	// Await reports whether Read returns the error of a change of a type that may be readable soon,
	// instead of taking it for lost. Nil for never. It must be set before the first read.
	Await func(resource.GroupResource) bool

	client *clientv3.Client
	values *atrest.Values
	log    *slog.Logger
	pasts  chan struct{} // semaphore for reads of the past
}

// NewReader returns a reader of the history of etcd, whose values are decrypted by values.
func NewReader(client *clientv3.Client, values *atrest.Values, log *slog.Logger) *Reader {
	return &Reader{client: client, values: values, log: log, pasts: make(chan struct{}, concurrentPasts)}
}

// Run is a contiguous part of history.
type Run struct {
	// Changes have no Previous yet.
	Changes []services.Change
	// Through is the revision through which Changes are complete.
	Through int64
	// Lost are changes that cannot be read. There are no earlier changes of their types.
	Lost []Lost
}

// Lost is a change of a type.
type Lost struct {
	resource.GroupResource
	Revision int64
}

// lose records that a change cannot be read.
func (r *Run) lose(l Lost) {
	r.Changes = slices.DeleteFunc(r.Changes, func(c services.Change) bool { return c.Object.Key.GroupResource == l.GroupResource })
	r.Lost = append(r.Lost, l)
}

// Follow watches all objects and the end of their epoch (epoch.Range) after a revision, and requests progress from etcd
// at the given interval. The caller passes the responses to Read. The watch ends with ctx.
func (r *Reader) Follow(ctx context.Context, after int64, every time.Duration) clientv3.WatchChan {
	from, end := epoch.Range()
	return r.watch(ctx, from, end, after, every)
}

// watch watches a range of keys.
func (r *Reader) watch(ctx context.Context, from, end string, after int64, every time.Duration) clientv3.WatchChan {
	ctx = etcd.OwnStream(clientv3.WithRequireLeader(ctx))
	responses := r.client.Watch(ctx, from, clientv3.WithRange(end), clientv3.WithPrevKV(),
		clientv3.WithRev(after+1), clientv3.WithFragment())
	go r.requestProgress(ctx, every, r.client.RequestProgress)
	return responses
}

// requestProgress calls request at growing intervals, up to every, until ctx ends. It only
// logs errors, since the receiver of the watch gets that of a broken stream.
func (r *Reader) requestProgress(ctx context.Context, every time.Duration, request func(context.Context) error) {
	timer := time.NewTimer(firstProgress)
	defer timer.Stop()
	for pause := firstProgress; ; {
		select {
		case <-timer.C:
			if err := request(ctx); err != nil && ctx.Err() == nil {
				r.log.Debug("requesting progress from etcd failed", "error", err)
			}
			pause = min(2*pause, every)
			timer.Reset(pause)
		case <-ctx.Done():
			return
		}
	}
}

// failure returns the error of a response; it is Compacted if the history is compacted.
func failure(response clientv3.WatchResponse) error {
	if response.CompactRevision != 0 {
		return Compacted{Through: response.CompactRevision}
	}
	return response.Err()
}

// Read converts a response to a Run. The error is Compacted if the history is
// compacted, and decoded.Unreadable after the Run if what follows may be readable soon.
func (r *Reader) Read(response clientv3.WatchResponse) (Run, error) {
	if err := failure(response); err != nil {
		return Run{}, err
	}
	if response.IsProgressNotify() {
		return Run{Through: response.Header.Revision}, nil
	}
	var run Run
	for _, event := range response.Events {
		if !bytes.HasPrefix(event.Kv.Key, []byte(resource.Root)) {
			run.Through = event.Kv.ModRevision
			continue
		}
		change, ok, err := r.change(event)
		switch gr := change.Object.Key.GroupResource; {
		case unreadable(err) && atrest.Transient(err) && r.Await != nil && r.Await(gr):
			run.Through = max(run.Through, event.Kv.ModRevision-1)
			return run, err
		case unreadable(err):
			run.lose(Lost{gr, event.Kv.ModRevision})
		case err != nil:
			return Run{}, err
		case ok:
			run.Changes = append(run.Changes, change)
		}
		run.Through = event.Kv.ModRevision
	}
	return run, nil
}

// change converts an event to a Change. ok is false if it is not about an object, or does not
// count; such an event is not published. The error is Compacted if the object before it is compacted,
// and decoded.Unreadable, with the key, if it cannot be read: the object is not gone, so that this is not its
// deletion.
func (r *Reader) change(event *clientv3.Event) (c services.Change, ok bool, err error) {
	c, err = r.decode(event)
	if errors.Is(err, errPrevious) {
		return c, false, Compacted{Through: event.Kv.ModRevision}
	}
	if err != nil && !errors.Is(err, errForeign) {
		r.log.Error("a value in etcd cannot be read", "key", string(event.Kv.Key), "revision", event.Kv.ModRevision, "error", err)
	}
	if unreadable(err) {
		c.Object.Key, _ = resource.ParsePath(string(event.Kv.Key)) // it has been parsed before
		return c, false, err
	}
	return c, err == nil, nil
}

// decode decodes an event into a Change.
func (r *Reader) decode(event *clientv3.Event) (services.Change, error) {
	path := string(event.Kv.Key)
	key, err := resource.ParsePath(path)
	if err != nil {
		return services.Change{}, err
	}
	if r.Owns != nil && !r.Owns(key.GroupResource) {
		return services.Change{}, errForeign
	}
	value := decoded.Value{Path: path, Key: key, Bytes: event.Kv.Value, Revision: event.Kv.ModRevision}
	if event.IsCreate() {
		object, trace, err := decoded.Object(r.values, value)
		return services.Change{Type: services.Added, Object: object, Trace: trace}, err
	}
	if event.PrevKv == nil {
		return services.Change{}, errPrevious
	}
	if event.Type == mvccpb.Event_DELETE {
		value.Bytes = event.PrevKv.Value
		object, _, err := decoded.Object(r.values, value)
		if unreadable(err) && !atrest.Transient(err) { // who has an earlier version of it must learn that it is gone
			return services.Change{Type: services.Deleted, Object: gone(key, event.Kv.ModRevision)}, nil
		}
		return services.Change{Type: services.Deleted, Object: object, OldLabels: object.Labels, OldFields: object.Fields}, err
	}
	previous := decoded.Value{Path: path, Key: key, Bytes: event.PrevKv.Value, Revision: event.PrevKv.ModRevision}
	old, err := r.before(previous)
	if err != nil {
		return services.Change{}, err
	}
	object, trace, err := decoded.Object(r.values, value)
	change := services.Change{Type: services.Modified, Object: object, OldLabels: old.Labels, OldFields: old.Fields, Trace: trace}
	if old.JSON != nil && (!maps.Equal(old.Labels, object.Labels) || !maps.Equal(old.Fields, object.Fields)) && stored.Check(key, old.JSON, old.At) == nil {
		change.OldJSON = tree.InsertResourceVersion(old.JSON, old.At, event.Kv.ModRevision)
	}
	return change, err
}

// before returns the record of the value before a change. One that cannot be read has no labels and fields: no
// watch has sent it.
func (r *Reader) before(v decoded.Value) (resource.Record, error) {
	old, err := decoded.Record(r.values, v.Path, v.Bytes)
	switch {
	case atrest.Transient(err):
		return old, &decoded.Unreadable{Key: v.Key, Revision: v.Revision, Reason: err}
	case err != nil:
		return resource.Record{}, nil
	}
	return old, nil
}

func unreadable(err error) bool {
	var u *decoded.Unreadable
	return errors.As(err, &u)
}

// gone returns a deleted object of which only the key is known.
func gone(key resource.Key, revision int64) services.Object {
	// Strings always marshal.
	raw, _ := json.Marshal(map[string]any{"metadata": map[string]string{
		"name": key.Name, "namespace": key.Namespace, "resourceVersion": resource.FormatResourceVersion(revision)}})
	return services.Object{Key: key, Revision: revision, JSON: raw}
}
