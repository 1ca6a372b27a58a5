package rpcserver

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/accept"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
	"github.com/portico-platform/portico/services/vocabulary"
)

// newSeconds registers the metric that counts and times calls.
func newSeconds(m *prometheus.Registry) *prometheus.HistogramVec {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "portico_rpc_server_seconds", Help: "Duration of calls from other services.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
	}, []string{"method", "code"})
	m.MustRegister(seconds)
	return seconds
}

// measured counts and times calls.
func measured(seconds *prometheus.HistogramVec) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		start := time.Now()
		answer, err := next(ctx, r)
		tracing.Observe(tracing.OfCaller(ctx), seconds.WithLabelValues(info.FullMethod, status.Code(err).String()), time.Since(start).Seconds())
		return answer, err
	}
}

// guard refuses calls that services.Callers does not allow.
type guard struct {
	callers    map[string][]services.Caller
	vocabulary vocabulary.Vocabulary
	log        *slog.Logger
	seconds    *prometheus.HistogramVec
	sometimes  *rate.Sometimes // for the log: a peer may make any number of calls
}

// first returns a method that refuses callers that may make no request of it at all, before its
// request is read: decode is what reads it.
func (g guard) first(fullMethod string, method grpc.MethodHandler) grpc.MethodHandler {
	return func(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		names := callerNames(ctx)
		if g.mayCall(names, fullMethod) {
			return method(server, ctx, decode, interceptor)
		}
		g.seconds.WithLabelValues(fullMethod, codes.PermissionDenied.String()).Observe(0)
		g.sometimes.Do(func() { g.log.Warn("call refused", "method", fullMethod, "caller", names) })
		return nil, status.Errorf(codes.PermissionDenied, "%q may not call %s", names, fullMethod)
	}
}

func (g guard) intercept(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	names := callerNames(ctx)
	part, ok := g.allow(names, info.FullMethod, r)
	if !ok {
		subject, _ := typeOf(r)
		g.sometimes.Do(func() {
			g.log.WarnContext(tracing.OfCaller(ctx), "call refused", "method", info.FullMethod, "caller", names, "resource", subject.String())
		})
		return nil, status.Errorf(codes.PermissionDenied, "%q may not call %s for %q", names, info.FullMethod, subject.String())
	}
	if part != "" {
		ctx = rpc.WithPart(ctx, part)
	}
	return next(ctx, r)
}

// allow reports whether a caller with these names may call a gRPC method, as in
// /portico.v1.Store/Get, for the resource type of the request. part is the field that the
// caller may change; empty means any.
func (g guard) allow(names []string, fullMethod string, request any) (part string, ok bool) {
	callers, everybody := g.callersOf(fullMethod)
	if everybody {
		return "", len(names) > 0
	}
	for _, c := range callers {
		if !slices.Contains(names, c.Service) || !g.covers(c, request) {
			continue
		}
		if c.Part == "" {
			return "", true
		}
		part, ok = c.Part, true
	}
	return part, ok
}

// callersOf returns who may call a method; everybody is true if every service may.
func (g guard) callersOf(fullMethod string) (callers []services.Caller, everybody bool) {
	service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	if service == healthpb.Health_ServiceDesc.ServiceName {
		return nil, method == "Check"
	}
	contract := service[strings.LastIndexByte(service, '.')+1:]
	callers, found := g.callers[contract+"/"+method]
	if !found {
		callers = g.callers[contract]
	}
	return callers, false
}

// mayCall reports whether a caller with these names may make some request of a method.
func (g guard) mayCall(names []string, fullMethod string) bool {
	callers, everybody := g.callersOf(fullMethod)
	return everybody && len(names) > 0 || slices.ContainsFunc(callers, func(c services.Caller) bool { return slices.Contains(names, c.Service) })
}

// covers reports whether a caller may name the resource type of a request; a caller whose
// types are nil may make every request, also those without a type.
func (g guard) covers(c services.Caller, request any) bool {
	if c.Types == nil {
		return true
	}
	requested, ok := typeOf(request)
	if !ok || requested.Custom {
		return ok && c.Custom
	}
	return slices.ContainsFunc(c.Types, func(t resource.GroupResource) bool {
		t.Group = g.vocabulary.Group(t.Group)
		return t == requested
	})
}

// typeOf returns the resource type of a request; false if it has none, or if its key has
// fields that the guard does not know.
func typeOf(request any) (resource.GroupResource, bool) {
	switch m := request.(type) {
	case interface{ GetKey() *pb.Key }:
		key := m.GetKey()
		return resource.GroupResource{Group: key.GetGroup(), Resource: key.GetResource(), Custom: key.GetCustom()},
			key != nil && onlyFields(key, "group", "resource", "namespace", "name", "custom")
	case interface{ GetGroupResource() *pb.GroupResource }:
		gr := m.GetGroupResource()
		return resource.GroupResource{Group: gr.GetGroup(), Resource: gr.GetResource(), Custom: gr.GetCustom()},
			gr != nil && onlyFields(gr, "group", "resource", "custom")
	}
	return resource.GroupResource{}, false
}

// onlyFields reports whether no other fields of a message are set. A field that is added to
// the protocol could change the meaning of a key, so it must be added here first.
func onlyFields(m proto.Message, known ...protoreflect.Name) bool {
	only := len(m.ProtoReflect().GetUnknown()) == 0
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		only = only && slices.Contains(known, f.Name())
		return only
	})
	return only
}

// proving are credentials that tell a connection when its client has proved who it is.
type proving struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (p proving) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := p.TransportCredentials.ServerHandshake(raw)
	if c, ok := raw.(accept.Prover); ok && err == nil {
		c.Proved()
	}
	return secured, info, err
}

// callerNames returns the service names in the caller's certificate.
func callerNames(ctx context.Context) []string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return peertls.Services(info.State)
}

// recovered turns a panic into an error of the call.
func recovered(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
		defer func() {
			if p := recover(); p != nil {
				log.ErrorContext(ctx, "call panicked", "method", info.FullMethod, "panic", p, "stack", string(debug.Stack()))
				err = status.Errorf(codes.Internal, "%s panicked", info.FullMethod)
			}
		}()
		return next(ctx, r)
	}
}

// streamed applies an interceptor to a method with a stream. It sees no request, so the guard
// allows only callers that may name any resource type.
func streamed(intercept grpc.UnaryServerInterceptor) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		_, err := intercept(stream.Context(), nil, &grpc.UnaryServerInfo{Server: server, FullMethod: info.FullMethod},
			func(ctx context.Context, _ any) (any, error) { return nil, next(server, contextStream{stream, ctx}) })
		return err
	}
}

// contextStream is a stream with the context of an interceptor.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s contextStream) Context() context.Context { return s.ctx }
