package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/portico-platform/portico/services/kit/run/breaker"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/kit/run/rpcserver"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/rpc/window"
)

const (
	annotationPeer     = "peer"
	annotationRequired = "required"
)

// PeerFlag registers --<service>-address, the address of a service in another process.
func PeerFlag(fs *pflag.FlagSet, service string) {
	name := service + "-address"
	fs.String(name, "", fmt.Sprintf("`address` of the %s service: comma-separated host:port, or a gRPC target such as dns:///%s:7443", service, service))
	_ = fs.SetAnnotation(name, annotationPeer, []string{service})
	Required(fs, name)
}

// Required marks a flag of fs as required.
func Required(fs *pflag.FlagSet, name string) {
	_ = fs.SetAnnotation(name, annotationRequired, []string{"true"})
}

func isRequired(f *pflag.Flag) bool { return f.Annotations[annotationRequired] != nil }

func isPeerFlag(f *pflag.Flag) bool { return f.Annotations[annotationPeer] != nil }

// DialPeer returns a connection to the service at the address of PeerFlag's flag. It does
// not wait for the service. The connection is closed on exit and is a readiness check of
// the process. After the start, calls to an unavailable service fail at once; repeatable
// reports whether calls of a method may be canceled after they were sent. The options
// override the defaults.
func (n *Node) DialPeer(service string, repeatable func(method string) bool, options ...grpc.DialOption) (grpc.ClientConnInterface, error) {
	flag := n.Flags.Lookup(service + "-address")
	if flag == nil || n.process.transport.identity == nil {
		return nil, fmt.Errorf("%s is not among the needs of %s", service, n.Service)
	}
	target, resolvers := peerTarget(flag.Value.String())
	watch := breaker.New(breaker.Config{Service: service, Credentials: n.process.transport.identity.Client(service),
		Armed: n.process.started.Load, Repeatable: repeatable, Metrics: n.Metrics})
	conn, err := grpc.NewClient(target, append(append(append(watch.Options(), []grpc.DialOption{
		grpc.WithTransportCredentials(n.process.transport.identity.Client(service)),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(rpcserver.MaxAnswer), grpc.MaxCallSendMsgSize(rpcserver.MaxRequest)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: rpcserver.KeepaliveEvery, Timeout: rpcserver.KeepaliveWait, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}),
	}...), append(window.Client(), resolvers...)...), options...)...)
	if err != nil {
		return nil, Usagef("--%s: %v", flag.Name, err)
	}
	n.OnExit(func() { _ = conn.Close() })
	n.Monitor(service, false, conn)
	n.Go("breaker of "+service, func(ctx context.Context) error {
		watch.Watch(ctx, conn)
		return nil
	})
	return tracing.Conn(watch.Conn(conn)), nil
}

// Identity returns the identity of the process among those of the suite; nil if it has none.
func (n *Node) Identity() *peertls.Identity { return n.process.transport.identity }

// Monitor keeps a connection open, logs when it is lost and restored, and registers it as
// a readiness check of that name, which may be partial.
func (n *Node) Monitor(name string, partial bool, conn *grpc.ClientConn) {
	n.Health.Add(Check{Name: name, Partial: partial, Probe: func(context.Context) error { return reachable(conn) }})
	n.Go("connection to "+name, func(ctx context.Context) error {
		lost := false
		for state := conn.GetState(); ; state = conn.GetState() {
			switch {
			case state == connectivity.Idle:
				conn.Connect()
			case state == connectivity.Ready:
				n.Log.Info("connected", "to", name)
				lost = false
			case state == connectivity.TransientFailure && !lost:
				n.Log.Warn("cannot connect, retrying", "to", name, "address", conn.Target()[strings.LastIndexByte(conn.Target(), '/')+1:])
				lost = true
			}
			if !conn.WaitForStateChange(ctx, state) {
				return nil
			}
		}
	})
}

func reachable(conn *grpc.ClientConn) error {
	if state := conn.GetState(); state != connectivity.Ready {
		return fmt.Errorf("the connection is %s", strings.ToLower(state.String()))
	}
	return nil
}

// peerTarget returns the gRPC target of a PeerFlag's value.
func peerTarget(value string) (target string, resolvers []grpc.DialOption) {
	if strings.Contains(value, "://") {
		return value, nil
	}
	var state resolver.State
	for _, address := range strings.Split(value, ",") {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	if len(state.Endpoints) == 1 {
		return "dns:///" + value, nil
	}
	list := manual.NewBuilderWithScheme("list")
	list.InitialState(state)
	return "list:///" + value, []grpc.DialOption{grpc.WithResolvers(list)}
}
