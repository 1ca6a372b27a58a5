package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc/internal/seen"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

type storeServer struct {
	pb.UnsafeStoreServer
	impl services.Store
}

func RegisterStore(s grpc.ServiceRegistrar, impl services.Store) {
	pb.RegisterStoreServer(s, storeServer{impl: impl})
}

func (s storeServer) Get(ctx context.Context, m *pb.GetRequest) (*pb.Object, error) {
	read, err := readIn(m.GetRead())
	if err != nil {
		return nil, errorOut(err)
	}
	return objectAnswer(s.impl.Get(ctx, services.GetRequest{Key: keyIn(m.GetKey()), Read: read}))
}

func (s storeServer) List(ctx context.Context, m *pb.ListRequest) (*pb.Page, error) {
	read, err := readIn(m.GetRead())
	if err != nil {
		return nil, errorOut(err)
	}
	page, err := s.impl.List(ctx, services.ListRequest{
		GroupResource: groupResourceIn(m.GetGroupResource()), Namespace: m.GetNamespace(), Read: read,
		After: m.GetAfter(), Limit: int(m.GetLimit()),
		LabelSelector: m.GetLabelSelector(), FieldSelector: m.GetFieldSelector(), WithUnreadable: m.GetWithUnreadable(), FindEnd: m.GetFindEnd(),
	})
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.Page{
		Revision: page.Revision, Objects: each(page.Objects, objectOut),
		Next: page.Next, Remaining: page.Remaining, Epoch: page.Epoch, End: page.End,
	}, nil
}

func (s storeServer) Revision(ctx context.Context, m *pb.RevisionRequest) (*pb.RevisionResponse, error) {
	revision, err := s.impl.Revision(ctx, groupResourceIn(m.GetGroupResource()))
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.RevisionResponse{Revision: revision}, nil
}

func (s storeServer) Heads(ctx context.Context, m *pb.HeadsRequest) (*pb.HeadsResponse, error) {
	impl, ok := s.impl.(services.HeadReader)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "this store does not support Heads")
	}
	heads, err := impl.Heads(ctx, each(m.GetTypes(), groupResourceIn))
	if err != nil {
		return nil, errorOut(err)
	}
	return headsOut(heads), nil
}

// headsOut also has revision and epoch of the first head for callers of earlier releases.
func headsOut(heads []services.Head) *pb.HeadsResponse {
	m := &pb.HeadsResponse{}
	for i, h := range heads {
		if i == 0 {
			m.Revision, m.Epoch = h.Revision, h.Epoch
		}
		m.Heads, m.Revisions, m.Epochs = append(m.Heads, h.Changed), append(m.Revisions, h.Revision), append(m.Epochs, h.Epoch)
	}
	return m
}

// headsIn is the inverse of headsOut. It returns false unless there is one head for each of n types.
func headsIn(m *pb.HeadsResponse, n int) ([]services.Head, bool) {
	own := len(m.GetRevisions()) == n && len(m.GetEpochs()) == n
	heads := make([]services.Head, len(m.GetHeads()))
	for i, changed := range m.GetHeads() {
		if heads[i] = (services.Head{Changed: changed, Revision: m.GetRevision(), Epoch: m.GetEpoch()}); own && i < n {
			heads[i].Revision, heads[i].Epoch = m.GetRevisions()[i], m.GetEpochs()[i]
		}
	}
	return heads, len(heads) == n
}

func (s storeServer) Create(ctx context.Context, m *pb.CreateRequest) (*pb.Object, error) {
	return objectAnswer(s.impl.Create(ctx, services.CreateRequest{
		Key: keyIn(m.GetKey()), Content: contentIn(m.GetContent()), Requires: createRequires(m), Attempt: attemptIn(m.GetAttempt()),
	}))
}

func (s storeServer) Update(ctx context.Context, m *pb.UpdateRequest) (*pb.Object, error) {
	r := services.UpdateRequest{Key: keyIn(m.GetKey()), Revision: m.GetRevision(), Content: contentIn(m.GetContent()),
		Requires: each(m.GetRequires(), requirementIn), Attempt: attemptIn(m.GetAttempt()), Unchanged: m.GetUnchanged()}
	// A repeated write is not applied again; only its outcome is determined.
	if part := callersPart(ctx); part != "" && !r.Attempt.Repeated {
		var err error
		if r, err = s.onlyPart(ctx, r, part); err != nil {
			return nil, errorOut(err)
		}
	}
	return objectAnswer(s.impl.Update(ctx, r))
}

func (s storeServer) Delete(ctx context.Context, m *pb.DeleteRequest) (*pb.Object, error) {
	return objectAnswer(s.impl.Delete(ctx, services.DeleteRequest{
		Key: keyIn(m.GetKey()), Revision: m.GetRevision(), UID: m.GetUid(), Attempt: attemptIn(m.GetAttempt()),
	}))
}

type storeClient struct {
	peer pb.StoreClient
	seen seen.Revisions
}

func NewStore(c grpc.ClientConnInterface) services.Store {
	return &storeClient{peer: pb.NewStoreClient(c)}
}

func (c *storeClient) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	m, err := c.peer.Get(ctx, &pb.GetRequest{Key: keyOut(r.Key), Read: readOut(r.Read)})
	return c.object(ctx, r.Key, m, err)
}

func (c *storeClient) List(ctx context.Context, r services.ListRequest) (services.Page, error) {
	m, err := c.peer.List(ctx, &pb.ListRequest{
		GroupResource: groupResourceOut(r.GroupResource), Namespace: r.Namespace, Read: readOut(r.Read),
		After: r.After, Limit: int64(r.Limit),
		LabelSelector: r.LabelSelector, FieldSelector: r.FieldSelector, WithUnreadable: r.WithUnreadable, FindEnd: r.FindEnd,
	})
	if err != nil {
		return services.Page{}, errorIn(ctx, "store", err)
	}
	c.seen.Saw(r.GroupResource, m.GetRevision())
	return services.Page{
		Revision: m.GetRevision(), Objects: each(m.GetObjects(), objectIn),
		Next: m.GetNext(), Remaining: m.GetRemaining(), Epoch: m.GetEpoch(), End: m.End,
	}, nil
}

func (c *storeClient) Revision(ctx context.Context, of resource.GroupResource) (int64, error) {
	m, err := c.peer.Revision(ctx, &pb.RevisionRequest{GroupResource: groupResourceOut(of)})
	if err != nil {
		return 0, errorIn(ctx, "store", err)
	}
	c.seen.SawNow(of, m.GetRevision())
	return m.GetRevision(), nil
}

// Heads implements services.HeadReader. It returns an error if the store does not.
func (c *storeClient) Heads(ctx context.Context, types []resource.GroupResource) ([]services.Head, error) {
	m, err := c.peer.Heads(ctx, &pb.HeadsRequest{Types: each(types, groupResourceOut)})
	if err != nil {
		return nil, errorIn(ctx, "store", err)
	}
	heads, ok := headsIn(m, len(types))
	if !ok {
		return nil, faultf("store: %d heads of %d types", len(m.GetHeads()), len(types))
	}
	for i, h := range heads {
		c.seen.SawNow(types[i], h.Revision)
	}
	return heads, nil
}

func (c *storeClient) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	m := &pb.CreateRequest{Key: keyOut(r.Key), Content: contentOut(r.Content)}
	if len(r.Requires) > 0 {
		m.Source, m.Requires = requirementOut(r.Requires[0]), each(r.Requires[1:], requirementOut)
	}
	return c.write(ctx, r.Key, r.Attempt, func(ctx context.Context, a *pb.Attempt, o grpc.CallOption) (*pb.Object, error) {
		m.Attempt = a
		return c.peer.Create(ctx, m, o)
	})
}

func (c *storeClient) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	m := &pb.UpdateRequest{Key: keyOut(r.Key), Revision: r.Revision, Content: contentOut(r.Content), Requires: each(r.Requires, requirementOut), Unchanged: r.Unchanged}
	return c.write(ctx, r.Key, r.Attempt, func(ctx context.Context, a *pb.Attempt, o grpc.CallOption) (*pb.Object, error) {
		m.Attempt = a
		return c.peer.Update(ctx, m, o)
	})
}

func (c *storeClient) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	m := &pb.DeleteRequest{Key: keyOut(r.Key), Revision: r.Revision, Uid: r.UID}
	return c.write(ctx, r.Key, r.Attempt, func(ctx context.Context, a *pb.Attempt, o grpc.CallOption) (*pb.Object, error) {
		m.Attempt = a
		return c.peer.Delete(ctx, m, o)
	})
}

// object converts a response and checks that it is the requested object.
func (c *storeClient) object(ctx context.Context, requested resource.Key, m *pb.Object, err error) (services.Object, error) {
	if err != nil {
		return services.Object{}, errorIn(ctx, "store", err)
	}
	o := objectIn(m)
	if o.Key != requested {
		return services.Object{}, faultf("store: requested %s, received %s", requested, o.Key)
	}
	c.seen.Saw(o.Key.GroupResource, o.Revision)
	return o, nil
}

func objectAnswer(o services.Object, err error) (*pb.Object, error) {
	if err != nil {
		return nil, errorOut(err)
	}
	return objectOut(o), nil
}

func readOut(r services.Read) *pb.Read {
	return &pb.Read{Mode: pb.ReadMode(r.Mode), Revision: r.Revision}
}

// readIn returns BadRequest for unknown modes: a guess could return stale data.
func readIn(m *pb.Read) (services.Read, error) {
	if m.GetMode() < pb.ReadMode_MOST_RECENT || m.GetMode() > pb.ReadMode_EXACT {
		return services.Read{}, services.BadRequest("unknown read mode %d", m.GetMode())
	}
	return services.Read{Mode: services.ReadMode(m.GetMode()), Revision: m.GetRevision()}, nil
}

// createRequires joins both places in which a create names what it requires.
func createRequires(m *pb.CreateRequest) []services.Requirement {
	if m.GetSource() == nil {
		return each(m.GetRequires(), requirementIn)
	}
	return each(append([]*pb.Source{m.GetSource()}, m.GetRequires()...), requirementIn)
}

func requirementOut(r services.Requirement) *pb.Source {
	return &pb.Source{Key: keyOut(r.Key), Revision: r.Revision}
}

func requirementIn(m *pb.Source) services.Requirement {
	return services.Requirement{Key: keyIn(m.GetKey()), Revision: m.GetRevision()}
}

func contentOut(c services.Content) *pb.Content {
	return &pb.Content{Json: c.JSON, Uid: c.UID, Labels: c.Labels, Fields: c.Fields}
}

func contentIn(m *pb.Content) services.Content {
	return services.Content{JSON: m.GetJson(), UID: m.GetUid(), Labels: m.GetLabels(), Fields: m.GetFields()}
}

var (
	_ pb.StoreServer = storeServer{}
	_ services.Store = (*storeClient)(nil)

	_ services.HeadReader = (*storeClient)(nil)
)
