// Package contract declares the contracts that services of the suite offer and use, each
// with the flag, certificate name and gRPC transport for another process. It configures
// load balancing, retries and cancellation of calls; package rpc defines the encoding.
package contract

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest" // named in calls

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/rpc"
)

// The contracts between services.
var (
	Store     = declare("store", rpc.NewStore, rpc.RegisterStore)
	WatchHub  = declare("watch-hub", rpc.NewWatchHub, rpc.RegisterWatchHub)
	Authn     = declare("authn", rpc.NewAuthn, rpc.RegisterAuthn)
	Authz     = declare("authz", rpc.NewAuthz, rpc.RegisterAuthz)
	Admission = declare("admission", rpc.NewAdmission, rpc.RegisterAdmission)
)

// calls is the gRPC service config: each call goes to the replica with the fewest calls in
// flight, so that one that does not respond gets few, and waits until one is ready. Calls
// that change nothing are retried if the connection is lost, and hedged.
const calls = `{
	"loadBalancingConfig": [{"least_request_experimental": {"choiceCount": 10}}],
	"methodConfig": [{"name": [{}], "waitForReady": true}, {
		"name": [
			{"service": "portico.v1.Store", "method": "Get"},
			{"service": "portico.v1.Store", "method": "List"},
			{"service": "portico.v1.Store", "method": "Revision"},
			{"service": "portico.v1.Store", "method": "Heads"},
			{"service": "portico.v1.WatchHub"},
			{"service": "portico.v1.Authn"},
			{"service": "portico.v1.Authz"}
		],
		"waitForReady": true,
		"retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]
}`

// repeatable reports whether a method changes nothing. It must match the retry policy in
// calls.
func repeatable(method string) bool {
	switch service, name, _ := strings.Cut(strings.TrimPrefix(method, "/portico.v1."), "/"); service {
	case "Store":
		return name == "Get" || name == "List" || name == "Revision" || name == "Heads"
	case "WatchHub", "Authn", "Authz":
		return true
	}
	return false
}

// declare returns a contract. Its flag, peer and certificate have the name of the service
// that offers it.
func declare[T any](name string, client func(grpc.ClientConnInterface) T, serve func(grpc.ServiceRegistrar, T)) *run.Contract[T] {
	return &run.Contract[T]{
		Name:  name,
		Flags: func(fs *pflag.FlagSet) { run.PeerFlag(fs, name) },
		Dial: func(_ context.Context, n *run.Node) (T, error) {
			conn, err := n.DialPeer(name, repeatable, grpc.WithDefaultServiceConfig(calls))
			if err != nil {
				var none T
				return none, err
			}
			return client(hedged(conn)), nil
		},
		Serve: serve,
	}
}
