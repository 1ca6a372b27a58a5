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
)

const (
	annotationPeer     = "peer"
	annotationRequired = "required"
)

// PeerFlag registers where a service of the suite is, when it is in another
// process: --<service>-address.
func PeerFlag(fs *pflag.FlagSet, service string) {
	name := service + "-address"
	fs.String(name, "", fmt.Sprintf("`address` of the %s service: host:port, several with commas between, or a gRPC target such as dns:///%s:7443", service, service))
	_ = fs.SetAnnotation(name, annotationPeer, []string{service})
	Required(fs, name)
}

// Required marks a flag of fs that must have a value. Processes that do not have
// the flag need not give it.
func Required(fs *pflag.FlagSet, name string) {
	_ = fs.SetAnnotation(name, annotationRequired, []string{"true"})
}

func isRequired(f *pflag.Flag) bool { return f.Annotations[annotationRequired] != nil }

func isPeerFlag(f *pflag.Flag) bool { return f.Annotations[annotationPeer] != nil }

// DialPeer returns a connection to the service that PeerFlag's flag locates. It
// does not wait for the service. The connection ends with the process, and is one
// of its readiness checks. Once the process has started, calls to a service that is
// away fail at once; repeatable says of which methods calls may be given up even after
// they were sent. The options come on top.
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
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveEvery, Timeout: keepaliveWait, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}),
	}...), resolvers...), options...)...)
	if err != nil {
		return nil, Usagef("--%s: %v", flag.Name, err)
	}
	n.OnExit(func() { _ = conn.Close() })
	n.Monitor(service, conn)
	n.Go("breaker of "+service, func(ctx context.Context) error {
		watch.Watch(ctx, conn)
		return nil
	})
	return watch.Conn(conn), nil
}

// Monitor keeps a connection up, logs when it is lost and found again, and makes
// it a readiness check of that name.
func (n *Node) Monitor(name string, conn *grpc.ClientConn) {
	n.Health.Add(Check{Name: name, Probe: func(context.Context) error { return reachable(conn) }})
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
				n.Log.Warn("cannot connect, trying again", "to", name, "address", conn.Target())
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

// peerTarget reads the value of a PeerFlag.
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
