// Package rpcserver makes the gRPC server of a process: it refuses calls that services.Callers does
// not allow, and bounds what a peer may cost, also one whose certificate was stolen. It knows no
// service.
package rpcserver

import (
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/rpc/window"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// MaxAnswer bounds a response, in bytes. The largest are pages of lists.
	MaxAnswer = 64 << 20
	// MaxRequest bounds a request, in bytes. The largest have an object before and after a
	// change, each of a few MiB.
	MaxRequest = 32 << 20
	// maxHeaders bounds the headers of a request, in bytes.
	maxHeaders = 64 << 10
	// maxCalls bounds the calls of one connection that are in progress. Others wait.
	maxCalls = 2000
	// handshakeTimeout bounds the time until a client has proved who it is.
	handshakeTimeout = 10 * time.Second
	// callWorkers is how many calls at a time need no new goroutine, whose stack would grow.
	callWorkers = 32
	// Idle connections are probed, so that a lost peer is detected within seconds.
	KeepaliveEvery = 10 * time.Second
	KeepaliveWait  = 5 * time.Second
	// connectionAge makes clients reconnect and resolve new replicas from time to time.
	connectionAge = 10 * time.Minute
	// logInterval is the least pause between two lines of the log about refused calls.
	logInterval = 100 * time.Millisecond
)

// Config configures a server. All fields are required.
type Config struct {
	Identity   *peertls.Identity
	Vocabulary vocabulary.Vocabulary
	Metrics    *prometheus.Registry
	// Continued makes the spans of calls.
	Continued grpc.UnaryServerInterceptor
	Log       *slog.Logger
}

// Server is a gRPC server that refuses calls of methods that the caller may not call at all before
// their request is read.
type Server struct {
	*grpc.Server
	guard guard
}

// New returns a server without services. The interceptors of calls that are not refused at once,
// outermost first: measured; the guard, before any code of a service; continued, so that refused
// callers make no spans; recovered, around that code only.
func New(c Config) *Server {
	seconds := newSeconds(c.Metrics)
	g := guard{services.Callers(), c.Vocabulary, c.Log, seconds, &rate.Sometimes{First: 10, Interval: logInterval}}
	interceptors := []grpc.UnaryServerInterceptor{measured(seconds), g.intercept, c.Continued, recovered(c.Log)}
	streams := make([]grpc.StreamServerInterceptor, len(interceptors))
	for i, intercept := range interceptors {
		streams[i] = streamed(intercept)
	}
	server := grpc.NewServer(append(window.Server(), grpc.Creds(proving{c.Identity.Server()}), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ChainUnaryInterceptor(interceptors...), grpc.ChainStreamInterceptor(streams...),
		grpc.NumStreamWorkers(callWorkers), grpc.MaxConcurrentStreams(maxCalls), grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxRecvMsgSize(MaxRequest), grpc.MaxSendMsgSize(MaxAnswer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: KeepaliveEvery, Timeout: KeepaliveWait, MaxConnectionAge: connectionAge, MaxConnectionAgeGrace: time.Minute}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: KeepaliveEvery / 2, PermitWithoutStream: true}),
	)...)
	return &Server{server, g}
}

// RegisterService implements grpc.ServiceRegistrar. It puts the guard before each method, because the
// interceptors of methods without a stream run when the request has been read. A tap of gRPC would run
// before, but the timer for the deadline of a call that it refuses is not stopped, and the caller
// chooses the deadline. The server does not read the requests of methods that are not registered.
func (s *Server) RegisterService(d *grpc.ServiceDesc, server any) {
	guarded := *d
	guarded.Methods = slices.Clone(d.Methods)
	for i := range guarded.Methods {
		m := &guarded.Methods[i]
		m.Handler = s.guard.first("/"+d.ServiceName+"/"+m.MethodName, m.Handler)
	}
	s.Server.RegisterService(&guarded, server)
}
