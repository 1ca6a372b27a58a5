package contracttest_test

import (
	"context"
	"net/http"
	"strconv"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/rpc"
)

// Minimal implementations of the contracts, to test the suites.

type oneToken struct{ user services.UserInfo }

func (o oneToken) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	if c.BearerToken != "secret" {
		return services.Authentication{}, services.Unauthorized("")
	}
	return services.Authentication{User: o.user}, nil
}

type oneUser string

func (o oneUser) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	return services.Decision{Allowed: a.User.Name == string(o), Reason: "there is one user"}, nil
}

func (o oneUser) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return services.Rules{NonResource: []services.NonResourceRule{{Verbs: []string{"*"}, Paths: []string{"*"}}}}, nil
}

// manyOfOneUser is a oneUser that knows batches.
type manyOfOneUser struct{ oneUser }

func (o manyOfOneUser) AuthorizeBatch(ctx context.Context, requests []services.Attributes) (results []services.AuthzResult, err error) {
	if len(requests) > services.MaxAuthzBatch {
		return nil, services.BadRequest("too many")
	}
	for _, a := range requests {
		d, _ := o.Authorize(ctx, a)
		results = append(results, services.AuthzResult{Decision: d, Err: ctx.Err()})
	}
	return results, nil
}

type oneName string

func (o oneName) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{Object: []byte(`{"metadata":{"name":"changed"}}`), Warnings: []string{"changed"}}, nil
}

func (o oneName) Validate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if r.Name != string(o) {
		return services.AdmissionResponse{}, services.Forbidden("", r.Resource, r.Name, "there is one name")
	}
	return services.AdmissionResponse{}, nil
}

// ways returns functions that open an implementation directly and over gRPC.
func ways[T any](register func(grpc.ServiceRegistrar, T), client func(grpc.ClientConnInterface) T, impl T) map[string]func(*testing.T) T {
	return map[string]func(*testing.T) T{
		"direct": func(*testing.T) T { return impl },
		"remote": func(t *testing.T) T { return contracttest.Remote(t, register, client, impl) },
	}
}

func TestAuthn(t *testing.T) {
	user := services.UserInfo{Name: "jane", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v", "w"}}}
	for way, open := range ways(rpc.RegisterAuthn, rpc.NewAuthn, services.Authn(oneToken{user})) {
		t.Run(way, func(t *testing.T) {
			contracttest.Authn(t, open, contracttest.AuthnExample{
				Valid: services.Credentials{BearerToken: "secret"}, User: user,
				Invalid: services.Credentials{BearerToken: "guessed", Headers: http.Header{"X-Any": {"\xff"}}},
			})
		})
	}
}

func TestAuthz(t *testing.T) {
	all := ways(rpc.RegisterAuthz, rpc.NewAuthz, services.Authz(oneUser("jane")))
	for way, open := range ways(rpc.RegisterAuthz, rpc.NewAuthz, services.Authz(manyOfOneUser{"jane"})) {
		all[way+", with batches"] = open
	}
	for way, open := range all {
		t.Run(way, func(t *testing.T) {
			contracttest.Authz(t, open, contracttest.AuthzExample{
				Allowed: services.Attributes{User: services.UserInfo{Name: "jane"}, Verb: "get", Path: "/version"},
				Refused: services.Attributes{User: services.UserInfo{Name: "joe"}, Verb: "get", Path: "/version"},
			})
		})
	}
}

// BenchmarkAuthz reports the processor time of a decision over gRPC, in both processes together.
func BenchmarkAuthz(b *testing.B) {
	authz := contracttest.Remote[services.Authz](b, rpc.RegisterAuthz, rpc.NewAuthz, manyOfOneUser{"jane"})
	requests := make([]services.Attributes, services.MaxAuthzBatch)
	for i := range requests {
		requests[i] = services.Attributes{Verb: "watch", Version: "v1", Resource: "pods", Namespace: strconv.Itoa(i),
			User: services.UserInfo{Name: "jane" + strconv.Itoa(i/10), Groups: []string{"developers", "auditors", services.GroupAuthenticated}}}
	}
	for name, decide := range map[string]func(){
		"single": func() {
			for _, a := range requests {
				if _, err := authz.Authorize(b.Context(), a); err != nil {
					b.Fatal(err)
				}
			}
		},
		"batch": func() {
			for _, r := range services.AuthorizeAll(b.Context(), authz, requests) {
				if r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			var before, after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			for b.Loop() {
				decide()
			}
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(used)/float64(b.N*len(requests))/1e3, "µs-CPU/decision")
		})
	}
}

func TestAdmission(t *testing.T) {
	for way, open := range ways(rpc.RegisterAdmission, rpc.NewAdmission, services.Admission(oneName("good"))) {
		t.Run(way, func(t *testing.T) {
			contracttest.Admission(t, open, contracttest.AdmissionExample{
				Admitted: services.AdmissionRequest{Operation: services.OperationCreate, Resource: "pods", Name: "good", Object: []byte(`{}`)},
				Rejected: services.AdmissionRequest{Operation: services.OperationCreate, Resource: "pods", Name: "bad", Object: []byte(`{}`)},
			})
		})
	}
}
