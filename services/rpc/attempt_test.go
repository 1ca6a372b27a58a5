package rpc

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

// cutStore is a store whose connection breaks during the first write: the response is lost,
// then the service is unavailable for some calls, then it is available again.
type cutStore struct {
	pb.StoreClient
	away, revisions int
	calls           []*pb.Attempt
}

func (s *cutStore) Create(_ context.Context, r *pb.CreateRequest, options ...grpc.CallOption) (*pb.Object, error) {
	s.calls = append(s.calls, r.GetAttempt())
	switch {
	case len(s.calls) == 1:
		for _, o := range options {
			if p, ok := o.(grpc.PeerCallOption); ok {
				p.PeerAddr.Addr = &net.TCPAddr{}
			}
		}
		return nil, status.Error(codes.Unavailable, "error reading from server: EOF")
	case len(s.calls) <= 1+s.away:
		return nil, Refusal("store")
	}
	return &pb.Object{Key: r.GetKey(), Revision: 7, Json: r.GetContent().GetJson()}, nil
}

// Revision is asked for once before a write to a type that is not known yet.
func (s *cutStore) Revision(context.Context, *pb.RevisionRequest, ...grpc.CallOption) (*pb.RevisionResponse, error) {
	s.revisions++
	return &pb.RevisionResponse{Revision: 5}, nil
}

// TestARefusedQuestionIsNoAnswer: when the response to a write is lost, an unavailable
// store does not mean that the write was not applied.
func TestARefusedQuestionIsNoAnswer(t *testing.T) {
	store := &cutStore{away: 2}
	c := &storeClient{peer: store}
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: "a", Name: "b"}
	o, err := c.Create(t.Context(), services.CreateRequest{Key: key, Content: services.Content{JSON: []byte(`{}`)}})
	if err != nil || o.Revision != 7 {
		t.Fatalf("got %+v, %v, want the object at revision 7", o, err)
	}
	for i, a := range store.calls {
		if a.GetId() != store.calls[0].GetId() || a.GetRepeated() != (i > 0) || a.GetSince() != 5 {
			t.Errorf("call %d is %v", i, a)
		}
	}
	if _, err := c.Create(t.Context(), services.CreateRequest{Key: key, Content: services.Content{JSON: []byte(`{}`)}}); err != nil {
		t.Fatal(err)
	}
	if last := store.calls[len(store.calls)-1]; last.GetSince() != 7 || store.revisions != 1 {
		t.Errorf("a later call is %v, and the store was asked for %d revisions", last, store.revisions)
	}
}
