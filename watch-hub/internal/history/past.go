package history

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/resource"
)

// concurrentPasts is the maximum number of concurrent reads of the past. For each, etcd
// loads all changes after a revision into memory, however few are requested, and many
// clients may resume old watches at the same time.
const concurrentPasts = 2

// pastProgress is the interval of progress requests of a read of the past.
const pastProgress = 50 * time.Millisecond

// Query selects the changes of one type, or of all, in (After, Through]. The result ends
// when it has Limit changes or reaches Bytes.
type Query struct {
	GroupResource  resource.GroupResource
	After, Through int64
	Limit, Bytes   int
}

// Past returns the changes of one type within the limits of the query. The error is
// Compacted if not all of them are available or can be read, and decoded.Unreadable if
// that may change soon.
func (r *Reader) Past(ctx context.Context, q Query) (Run, error) {
	return r.past(ctx, q.GroupResource.Path(), q)
}

// Between returns the changes of all types in (q.After, q.Through]. The error is
// Compacted if not all of them are available, and ErrLarge if they exceed q.Limit or
// q.Bytes.
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
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	receive, err := r.responses(watching, prefix, q.After)
	if err != nil {
		return Run{}, err
	}
	a := answer{query: q}
	for !a.whole {
		response, err := receive()
		if err != nil {
			return Run{}, err
		}
		if err := r.extend(&a, response); err != nil {
			return Run{}, err
		}
	}
	return a.Run, r.held(ctx, q.After)
}

// answer collects the result of a query.
type answer struct {
	Run
	query Query
	bytes int
	whole bool // complete
}

// extend adds the events of a response. It decodes them one by one: a response may hold
// far more than was requested.
func (r *Reader) extend(a *answer, response clientv3.WatchResponse) error {
	if err := failure(response); err != nil {
		return err
	}
	var through int64
	if response.IsProgressNotify() {
		through = response.Header.Revision
	}
	for _, event := range response.Events {
		if through = event.Kv.ModRevision; through > a.query.Through {
			break
		}
		change, ok, err := r.change(event)
		if unreadable(err) {
			if a.query.GroupResource != (resource.GroupResource{}) {
				return ofOne(err, through)
			}
			a.lose(Lost{change.Object.Key.GroupResource, through})
			continue
		}
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		a.Changes, a.Through = append(a.Changes, change), through
		a.bytes += len(change.Object.JSON)
		if len(a.Changes) >= a.query.Limit || a.bytes >= a.query.Bytes {
			a.whole = true
			return nil
		}
	}
	if through >= a.query.Through {
		a.Through, a.whole = a.query.Through, true
	}
	return nil
}

// ofOne returns the error of a read of one type with a change that cannot be read: its history begins
// after that, unless it may be readable soon.
func ofOne(err error, revision int64) error {
	if atrest.Transient(err) {
		return err
	}
	return Compacted{Through: revision}
}

// responses starts a watch and returns a function that receives its responses. Over a
// connection it uses its own stream and reads one response at a time: etcd sends a thousand
// revisions in one, and the client library would join the fragments of a response and
// queue responses without bound.
func (r *Reader) responses(ctx context.Context, prefix string, after int64) (func() (clientv3.WatchResponse, error), error) {
	connection := r.client.ActiveConnection()
	if connection == nil { // etcd in this process: events are shared, not copied
		responses := r.watch(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), after, pastProgress)
		return func() (clientv3.WatchResponse, error) {
			response, ok := <-responses
			if !ok {
				return response, errEnded
			}
			return response, nil
		}, nil
	}
	stream, err := pb.NewWatchClient(connection).Watch(clientv3.WithRequireLeader(ctx))
	if err != nil {
		return nil, err
	}
	create := &pb.WatchCreateRequest{
		Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)), StartRevision: after + 1, PrevKv: true, Fragment: true,
	}
	if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return nil, err
	}
	progress := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	go r.requestProgress(ctx, pastProgress, func(context.Context) error { return stream.Send(progress) })
	return func() (clientv3.WatchResponse, error) {
		response, err := stream.Recv()
		if err != nil {
			return clientv3.WatchResponse{}, rpctypes.Error(err)
		}
		return asResponse(response), nil
	}, nil
}

// asResponse converts a response to the client's type.
func asResponse(r *pb.WatchResponse) clientv3.WatchResponse {
	return clientv3.WatchResponse{
		Header: r.Header, Events: r.Events, CompactRevision: r.CompactRevision, Canceled: r.Canceled, Created: r.Created,
	}
}

// held returns Compacted if the state at a revision is compacted: a watch may then miss
// deletions right after it without an error.
func (r *Reader) held(ctx context.Context, revision int64) error {
	_, err := r.client.Get(ctx, resource.Root, clientv3.WithRev(max(revision, 1)), clientv3.WithCountOnly())
	if errors.Is(err, rpctypes.ErrCompacted) {
		return Compacted{Through: revision + 1}
	}
	return err
}
