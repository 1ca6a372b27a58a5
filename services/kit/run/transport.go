package run

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/portico-platform/portico/services/kit/run/accept"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/kit/run/rpcserver"
)

// drainTimeout bounds the wait for calls in progress at a stop.
const drainTimeout = 5 * time.Second

// peerFlags registers the flags for offering contracts to other processes and for mutual
// TLS.
func peerFlags(fs *pflag.FlagSet, offers bool) {
	if offers {
		fs.String("rpc-address", "", "`address` at which this process serves its contracts to other processes (gRPC with mutual TLS); empty: none")
	}
	fs.String("peer-ca-file", "", "`file` with the certificates of the authorities that sign the services' certificates")
	fs.String("peer-cert-file", "", "`file` with this process's certificate; its DNS names are the names of the services in the process. Read again when it changes, as are the CA and the key")
	fs.String("peer-key-file", "", "`file` with the key of that certificate")
	expiry.Flags(fs, expiry.Authorities, "peer-ca-file")
	expiry.Flags(fs, expiry.Own, "peer-cert-file")
}

// transport is the gRPC transport between this process and others.
type transport struct {
	identity *peertls.Identity // nil if there are no other processes
	address  string
	server   *rpcserver.Server // nil without --rpc-address
	health   *health.Server
	listener net.Listener
	log      *slog.Logger
}

// newTransport reads the flags that peerFlags registered.
func newTransport(s *settings, n Node) (*transport, error) {
	c := &transport{address: s.text("rpc-address")}
	used := c.address != ""
	s.flags.VisitAll(func(f *pflag.Flag) {
		used = used || isPeerFlag(f) && f.Value.String() != ""
	})
	for _, name := range []string{"peer-ca-file", "peer-cert-file", "peer-key-file"} {
		switch given := s.text(name) != ""; {
		case used && !given:
			return nil, Usagef("--%s is required: services reach each other over mutual TLS", name)
		case !used && given:
			return nil, Usagef("--%s has no effect without --rpc-address", name)
		}
	}
	if !used {
		return c, nil
	}
	var err error
	files := peertls.Files{CA: s.text("peer-ca-file"), Cert: s.text("peer-cert-file"), Key: s.text("peer-key-file")}
	if c.identity, err = peertls.Load(files, s.log("peers")); err != nil {
		return nil, Usagef("--peer-ca-file, --peer-cert-file, --peer-key-file: %v", err)
	}
	if c.address != "" {
		c.log = s.log("rpc")
		c.server = rpcserver.New(rpcserver.Config{Identity: c.identity, Vocabulary: s.vocabulary, Metrics: n.Metrics, Continued: n.Tracer.Continued, Log: c.log})
		c.health = health.NewServer()
		healthpb.RegisterHealthServer(c.server, c.health)
	}
	return c, nil
}

// checkNames returns a usage error if the certificate lacks the name of an offered
// contract, because callers would reject it in the handshake.
func (c *transport) checkNames(offers []Dependency) error {
	if c.server == nil {
		return nil
	}
	names := c.identity.Services()
	for _, o := range offers {
		if o.remote() && !slices.Contains(names, o.name()) {
			return Usagef("--peer-cert-file: the certificate is for %q, but this process offers %s", names, o.name())
		}
	}
	return nil
}

// listen starts serving. It is called when all services are ready.
func (c *transport) listen(fail func(error)) (err error) {
	if c.server == nil {
		return nil
	}
	if c.listener, err = accept.ListenForPeers(c.address, accept.Clients(), rpcserver.KeepaliveWait, c.log); err != nil {
		return fmt.Errorf("--rpc-address: %w", err)
	}
	for name := range c.server.GetServiceInfo() {
		c.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	go func() {
		if err := c.server.Serve(c.listener); err != nil {
			fail(fmt.Errorf("serving on --rpc-address: %w", err))
		}
	}()
	return nil
}

// stop stops serving: calls in progress may finish within drainTimeout, new ones are
// refused.
func (c *transport) stop(ctx context.Context) {
	if c.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	c.health.Shutdown()
	drained := make(chan struct{})
	go func() {
		c.server.GracefulStop()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
		c.server.Stop()
		<-drained
	}
}
