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

	"github.com/portico-platform/portico/services/run/peertls"
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

// guarded refuses callers that the table does not name.
func guarded(callers map[string][]string, log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		names := callerNames(ctx)
		if !mayCall(callers, names, info.FullMethod) {
			log.Warn("call refused", "method", info.FullMethod, "caller", names)
			return nil, status.Errorf(codes.PermissionDenied, "%q may not call %s", names, info.FullMethod)
		}
		return next(ctx, r)
	}
}

// mayCall looks up a gRPC method, as in /portico.v1.Store/Get.
func mayCall(callers map[string][]string, names []string, fullMethod string) bool {
	service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	if service == healthpb.Health_ServiceDesc.ServiceName {
		return len(names) > 0
	}
	contract := service[strings.LastIndexByte(service, '.')+1:]
	allowed, ok := callers[contract+"/"+method]
	if !ok {
		allowed = callers[contract]
	}
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(allowed, name) })
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
