package rpc

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc/porticov1"
)

// The silent services return zero values. They embed their contracts for other methods.
type (
	silentStore     struct{ services.Store }
	silentHub       struct{ services.WatchHub }
	silentAuthn     struct{ services.Authn }
	silentAuthz     struct{ services.Authz }
	silentAdmission struct {
		services.Admission
		services.AdmissionBatch
	}
)

func (silentStore) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	return services.Object{Key: r.Key}, nil
}

func (silentStore) List(context.Context, services.ListRequest) (services.Page, error) {
	return services.Page{}, nil
}

func (silentStore) Revision(context.Context, resource.GroupResource) (int64, error) { return 1, nil }

func (silentStore) Create(_ context.Context, r services.CreateRequest) (services.Object, error) {
	return services.Object{Key: r.Key}, nil
}

func (silentStore) Update(_ context.Context, r services.UpdateRequest) (services.Object, error) {
	return services.Object{Key: r.Key}, nil
}

func (silentStore) Delete(_ context.Context, r services.DeleteRequest) (services.Object, error) {
	return services.Object{Key: r.Key}, nil
}

func (silentHub) Keys(context.Context, services.KeysRequest) (services.Keys, error) {
	return services.Keys{}, nil
}

func (silentHub) Replay(context.Context, services.ReplayRequest) (services.Replay, error) {
	return services.Replay{}, nil
}

func (silentAuthn) Authenticate(context.Context, services.Credentials) (services.Authentication, error) {
	return services.Authentication{}, nil
}

func (silentAuthz) Authorize(context.Context, services.Attributes) (services.Decision, error) {
	return services.Decision{}, nil
}

func (silentAuthz) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return services.Rules{}, nil
}

func (silentAuthz) AuthorizeBatch(_ context.Context, r []services.Attributes) ([]services.AuthzResult, error) {
	return make([]services.AuthzResult, len(r)), nil
}

func (silentAdmission) Mutate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, nil
}

func (silentAdmission) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, nil
}

func (silentAdmission) MutateBatch(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	return nil, nil
}

func (silentAdmission) ValidateBatch(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	return nil, nil
}

// served collects the registered gRPC services.
type served struct {
	descriptions []*grpc.ServiceDesc
	servers      []any
}

func (s *served) RegisterService(d *grpc.ServiceDesc, server any) {
	s.descriptions, s.servers = append(s.descriptions, d), append(s.servers, server)
}

// FuzzRequests sends arbitrary bytes as the request of every method of every contract: each
// returns a response or a status.
func FuzzRequests(f *testing.F) {
	var all served
	RegisterStore(&all, silentStore{})
	RegisterWatchHub(&all, silentHub{})
	RegisterAuthn(&all, silentAuthn{})
	RegisterAuthz(&all, silentAuthz{})
	RegisterAdmission(&all, silentAdmission{})
	RegisterAdmissionBatch(&all, silentAdmission{})
	f.Fuzz(func(t *testing.T, message []byte) {
		for i, d := range all.descriptions {
			for _, m := range d.Methods {
				decode := func(into any) error { return proto.Unmarshal(message, into.(proto.Message)) }
				if _, err := m.Handler(all.servers[i], t.Context(), decode, nil); err != nil && err.Error() == "" {
					t.Errorf("%s/%s: an error without a message", d.ServiceName, m.MethodName)
				}
			}
		}
	})
}

// FuzzStatus decodes arbitrary error details: message, code and reason survive encoding and
// decoding.
func FuzzStatus(f *testing.F) {
	f.Fuzz(func(t *testing.T, detail []byte) {
		var m porticov1.Status
		if proto.Unmarshal(detail, &m) != nil {
			return
		}
		s := statusIn(&m)
		if again := statusIn(statusOut(s)); again.Message != s.Message || again.Code != s.Code || again.Reason != s.Reason {
			t.Errorf("got %+v, then %+v", s, again)
		}
	})
}
