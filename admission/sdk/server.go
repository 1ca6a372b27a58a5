package sdk

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/rpc"
	"github.com/portico-platform/portico/services/rpc/window"
)

const (
	// keepaliveEvery is how often idle connections are probed, and connectionAge makes
	// callers reconnect, so that new replicas get their share.
	keepaliveEvery = 10 * time.Second
	connectionAge  = 10 * time.Minute
	// healthEvery is how often the health over gRPC follows Service.Ready.
	healthEvery = 200 * time.Millisecond
	// maxCalls bounds the calls of one connection that are in progress, and maxHeaders the headers
	// of a request, in bytes.
	maxCalls   = 2000
	maxHeaders = 64 << 10
	// headerTimeout, bodyTimeout and idleTimeout end slow connections over HTTP, and the first of
	// them also handshakes of gRPC.
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Server is a service with open listeners.
type Server struct {
	// Address, ReviewAddress and StatusAddress are the addresses of the listeners; empty if
	// there is none.
	Address, ReviewAddress, StatusAddress string

	options   Options
	admission *admission
	log       *slog.Logger
	rpc       *grpc.Server
	health    *health.Server
	reviews   *http.Server
	status    *http.Server
	started   atomic.Bool // Start has returned
	draining  atomic.Bool
	serve     []func() error
	listeners []net.Listener
}

// Listen checks the options and opens the listeners. Serve must follow.
func Listen(s Service, o Options) (*Server, error) {
	if err := o.check(s); err != nil {
		return nil, err
	}
	server := &Server{options: o, log: o.logger(s.Name), admission: newAdmission(s, o)}
	if err := server.options.ensureCertificate(s.Name, server.log); err != nil {
		return nil, err
	}
	for _, open := range []func() error{server.listenRPC, server.listenReviews, server.listenStatus} {
		if err := open(); err != nil {
			for _, l := range server.listeners {
				_ = l.Close()
			}
			return nil, err
		}
	}
	return server, nil
}

// listen opens a listener and returns it with its address.
func (s *Server) listen(flag, address string) (net.Listener, string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", flag, err)
	}
	s.listeners = append(s.listeners, l)
	return l, l.Addr().String(), nil
}

func (s *Server) listenRPC() (err error) {
	if s.options.Address == "" {
		return nil
	}
	identity, err := loadIdentity(s.options, s.options.ClientCAFile, s.log)
	if err != nil {
		return err
	}
	var l net.Listener
	if l, s.Address, err = s.listen("--address", s.options.Address); err != nil {
		return err
	}
	s.rpc = grpc.NewServer(append(window.Server(),
		grpc.Creds(credentials.NewTLS(identity.config(tls.VersionTLS13, "h2"))),
		grpc.MaxRecvMsgSize(s.options.MaxRequestBytes), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxCalls), grpc.ConnectionTimeout(headerTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveEvery / 2, MaxConnectionAge: connectionAge, MaxConnectionAgeGrace: time.Minute}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveEvery / 2, PermitWithoutStream: true}),
	)...)
	rpc.RegisterAdmission(s.rpc, s.admission)
	rpc.RegisterAdmissionBatch(s.rpc, services.Batched(s.admission))
	s.health = health.NewServer()
	s.setHealth() // not serving, until Start has returned
	healthpb.RegisterHealthServer(s.rpc, s.health)
	s.serve = append(s.serve, func() error { return s.rpc.Serve(l) })
	return nil
}

func (s *Server) listenReviews() (err error) {
	if s.options.ReviewAddress == "" {
		return nil
	}
	identity, err := loadIdentity(s.options, s.options.ReviewClientCAFile, s.log)
	if err != nil {
		return err
	}
	var l net.Listener
	if l, s.ReviewAddress, err = s.listen("--review-address", s.options.ReviewAddress); err != nil {
		return err
	}
	s.reviews = s.http(reviewHandler(s.admission, s.options.MaxRequestBytes))
	s.reviews.TLSConfig = identity.config(tls.VersionTLS12, "h2", "http/1.1")
	s.serve = append(s.serve, func() error { return s.reviews.ServeTLS(l, "", "") })
	return nil
}

func (s *Server) listenStatus() (err error) {
	if s.options.StatusAddress == "" {
		return nil
	}
	var l net.Listener
	if l, s.StatusAddress, err = s.listen("--status-address", s.options.StatusAddress); err != nil {
		return err
	}
	s.status = s.http(s.statusPages())
	s.serve = append(s.serve, func() error { return s.status.Serve(l) })
	return nil
}

func (s *Server) http(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaders, ErrorLog: log.New(logWriter{s.log}, "", 0)}
}

// logWriter logs the errors of connections, most of which are handshakes that failed.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	w.log.Warn("connection", "error", string(line))
	return len(line), nil
}

// statusPages returns the pages of the status port.
func (s *Server) statusPages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = s.admission.metrics.write(w, len(s.admission.slots))
	})
	return mux
}

// ready returns why the service is not ready, nil if it is.
func (s *Server) ready() error {
	switch {
	case s.draining.Load():
		return errors.New("shutting down")
	case !s.started.Load():
		return errors.New("starting")
	case s.admission.service.Ready != nil:
		return s.admission.service.Ready()
	}
	return nil
}

// setHealth sets the health over gRPC, of the whole server and of the contract.
func (s *Server) setHealth() {
	status := healthpb.HealthCheckResponse_SERVING
	if s.ready() != nil {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range []string{"", "portico.v1.Admission", "portico.v1.AdmissionBatch"} {
		s.health.SetServingStatus(name, status)
	}
}
