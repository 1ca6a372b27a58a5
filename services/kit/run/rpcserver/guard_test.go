package rpcserver

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestTypesWithFurtherFieldsAreRefused: a key with unknown fields matches no type.
func TestTypesWithFurtherFieldsAreRefused(t *testing.T) {
	g := guard{callers: services.Callers(), vocabulary: vocabulary.Platform()}
	key := &pb.Key{Resource: "secrets", Namespace: "ns", Name: "a"}
	if _, ok := g.allow([]string{"authn"}, "/portico.v1.Store/Get", &pb.GetRequest{Key: key}); !ok {
		t.Fatal("authn may not read a secret")
	}
	more := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	raw, err := proto.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	further := &pb.Key{}
	if err := proto.Unmarshal(append(raw, more...), further); err != nil {
		t.Fatal(err)
	}
	for _, request := range []any{&pb.GetRequest{Key: further}, &pb.GetRequest{}, &pb.ListRequest{}, &pb.RevisionRequest{}, nil} {
		if _, ok := g.allow([]string{"authn"}, "/portico.v1.Store/Get", request); ok {
			t.Errorf("allowed: %v", request)
		}
	}
	if _, ok := g.allow([]string{"frontdoor"}, "/portico.v1.Store/Get", &pb.GetRequest{Key: further}); !ok {
		t.Error("the front door is restricted to types")
	}
}
