// Package contract declares the contracts as services of the suite offer and use them:
// each with the flag, the certificate name and the gRPC transport that reach it in
// another process. How calls are spread, repeated and given up is decided here; what
// goes over the wire is decided in package rpc.
package contract

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/rpc"
)

// The contracts, as services offer and use them.
var (
	Store     = declare("store", rpc.NewStore, rpc.RegisterStore)
	WatchHub  = declare("watch-hub", rpc.NewWatchHub, rpc.RegisterWatchHub)
	Authn     = declare("authn", rpc.NewAuthn, rpc.RegisterAuthn)
	Authz     = declare("authz", rpc.NewAuthz, rpc.RegisterAuthz)
	Admission = declare("admission", rpc.NewAdmission, rpc.RegisterAdmission)
)

// calls spreads calls over all replicas of a service and lets them wait until one
// is up. What changes nothing is asked again when a connection is lost under way.
const calls = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"methodConfig": [{"name": [{}], "waitForReady": true}, {
		"name": [
			{"service": "portico.v1.Store", "method": "Get"},
			{"service": "portico.v1.Store", "method": "List"},
			{"service": "portico.v1.Store", "method": "Revision"},
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

// repeatable reports whether a call of a method changes nothing, as the retry policy
// of calls says it too.
func repeatable(method string) bool {
	switch service, name, _ := strings.Cut(strings.TrimPrefix(method, "/portico.v1."), "/"); service {
	case "Store":
		return name == "Get" || name == "List" || name == "Revision"
	case "WatchHub", "Authn", "Authz":
		return true
	}
	return false
}

// declare returns a contract whose flag, peer and certificate have one name:
// that of the service that offers it.
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
			return client(conn), nil
		},
		Serve: serve,
	}
}
