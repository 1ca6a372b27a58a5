package run

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
	"github.com/portico-platform/portico/services/vocabulary"
)

// measured counts and times calls.
func measured(m *prometheus.Registry) grpc.UnaryServerInterceptor {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "portico_rpc_server_seconds", Help: "Time to answer calls of other services.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
	}, []string{"method", "code"})
	m.MustRegister(seconds)
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		start := time.Now()
		answer, err := next(ctx, r)
		seconds.WithLabelValues(info.FullMethod, status.Code(err).String()).Observe(time.Since(start).Seconds())
		return answer, err
	}
}

// guard refuses calls that the table does not allow.
type guard struct {
	callers    map[string][]services.Caller
	vocabulary vocabulary.Vocabulary
	log        *slog.Logger
}

func (g guard) intercept(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	names := callerNames(ctx)
	part, ok := g.allow(names, info.FullMethod, r)
	if !ok {
		subject, _ := typeOf(r)
		g.log.Warn("call refused", "method", info.FullMethod, "caller", names, "resource", subject.String())
		return nil, status.Errorf(codes.PermissionDenied, "%q may not call %s for %q", names, info.FullMethod, subject.String())
	}
	if part != "" {
		ctx = rpc.WithPart(ctx, part)
	}
	return next(ctx, r)
}

// allow looks up a gRPC method, as in /portico.v1.Store/Get, and the resource type
// that the request names. It returns the member that the caller may change; empty
// is any.
func (g guard) allow(names []string, fullMethod string, request any) (part string, ok bool) {
	service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	if service == healthpb.Health_ServiceDesc.ServiceName {
		return "", len(names) > 0
	}
	contract := service[strings.LastIndexByte(service, '.')+1:]
	callers, found := g.callers[contract+"/"+method]
	if !found {
		callers = g.callers[contract]
	}
	for _, c := range callers {
		if !slices.Contains(names, c.Service) || !g.covers(c.Types, request) {
			continue
		}
		if c.Part == "" {
			return "", true
		}
		part, ok = c.Part, true
	}
	return part, ok
}

// covers reports whether a request is about one of the types. A request without a
// type is covered only by the row that names none.
func (g guard) covers(types []resource.GroupResource, request any) bool {
	if types == nil {
		return true
	}
	asked, ok := typeOf(request)
	return ok && slices.ContainsFunc(types, func(t resource.GroupResource) bool {
		t.Group = g.vocabulary.Group(t.Group)
		return t == asked
	})
}

// typeOf returns the built-in resource type that a request is about; false when
// there is none, or when it is said with more than the guard understands.
func typeOf(request any) (resource.GroupResource, bool) {
	switch m := request.(type) {
	case interface{ GetKey() *pb.Key }:
		key := m.GetKey()
		return resource.GroupResource{Group: key.GetGroup(), Resource: key.GetResource()},
			key != nil && onlyFields(key, "group", "resource", "namespace", "name")
	case interface{ GetGroupResource() *pb.GroupResource }:
		gr := m.GetGroupResource()
		return resource.GroupResource{Group: gr.GetGroup(), Resource: gr.GetResource()}, gr != nil && onlyFields(gr, "group", "resource")
	}
	return resource.GroupResource{}, false
}

// onlyFields reports whether no other fields of a message have a value. A field that
// is added to the names of types makes another type of them until it is known here.
func onlyFields(m proto.Message, known ...protoreflect.Name) bool {
	only := len(m.ProtoReflect().GetUnknown()) == 0
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		only = only && slices.Contains(known, f.Name())
		return only
	})
	return only
}

// callerNames returns the services that the caller's certificate names.
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

// recovered turns a panic into an error of one call; the process goes on.
func recovered(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
		defer func() {
			if p := recover(); p != nil {
				log.Error("call panicked", "method", info.FullMethod, "panic", p, "stack", string(debug.Stack()))
				err = status.Errorf(codes.Internal, "%s panicked", info.FullMethod)
			}
		}()
		return next(ctx, r)
	}
}
