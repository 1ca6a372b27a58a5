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

// cutStore is a store behind a connection that is cut when the first write is on its
// way: the answer is lost, then the service is away for a while, then it is back.
type cutStore struct {
	pb.StoreClient
	away  int
	calls []*pb.Attempt
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

// TestARefusedQuestionIsNoAnswer: after the answer to a write is lost, that the store
// cannot be asked does not mean that the write was not applied.
func TestARefusedQuestionIsNoAnswer(t *testing.T) {
	store := &cutStore{away: 2}
	c := &storeClient{peer: store}
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: "a", Name: "b"}
	o, err := c.Create(t.Context(), services.CreateRequest{Key: key, Content: services.Content{JSON: []byte(`{}`)}})
	if err != nil || o.Revision != 7 {
		t.Fatalf("got %+v, %v, want the object at revision 7", o, err)
	}
	for i, a := range store.calls {
		if a.GetId() != store.calls[0].GetId() || a.GetRepeated() != (i > 0) {
			t.Errorf("call %d is %v", i, a)
		}
	}
}
