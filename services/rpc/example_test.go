package rpc_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/rpc"
)

// readers allows every user to read and none to write.
type readers struct{}

func (readers) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	if a.Verb == "get" || a.Verb == "list" || a.Verb == "watch" {
		return services.Decision{Allowed: true}, nil
	}
	return services.Decision{Reason: "this cluster is only read"}, nil
}

func (readers) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	all := []string{"*"}
	return services.Rules{Resource: []services.ResourceRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: all, Resources: all}}}, nil
}

// An implementation of Authz behind a gRPC server, and a client of it. Between processes
// use mutual TLS, with services/kit/run or your own credentials.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	rpc.RegisterAuthz(server, readers{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	authz := rpc.NewAuthz(conn)
	for _, verb := range []string{"list", "delete"} {
		d, err := authz.Authorize(context.Background(), services.Attributes{User: services.UserInfo{Name: "jane"}, Verb: verb, Resource: "pods"})
		fmt.Println(verb, d.Allowed, d.Reason, err)
	}
	// Output:
	// list true  <nil>
	// delete false this cluster is only read <nil>
}
