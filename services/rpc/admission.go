package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

type admissionServer struct {
	pb.UnsafeAdmissionServer
	impl services.Admission
}

func RegisterAdmission(s grpc.ServiceRegistrar, impl services.Admission) {
	pb.RegisterAdmissionServer(s, admissionServer{impl: impl})
}

func (s admissionServer) Mutate(ctx context.Context, m *pb.AdmissionRequest) (*pb.AdmissionResponse, error) {
	return admissionAnswer(s.impl.Mutate(ctx, admissionRequestIn(m)))
}

func (s admissionServer) Validate(ctx context.Context, m *pb.AdmissionRequest) (*pb.AdmissionResponse, error) {
	return admissionAnswer(s.impl.Validate(ctx, admissionRequestIn(m)))
}

type admissionClient struct{ peer pb.AdmissionClient }

func NewAdmission(c grpc.ClientConnInterface) services.Admission {
	return admissionClient{pb.NewAdmissionClient(c)}
}

func (c admissionClient) Mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	m, err := c.peer.Mutate(ctx, admissionRequestOut(r))
	if err != nil {
		return services.AdmissionResponse{}, errorIn(ctx, "admission", err)
	}
	return admissionResponseIn(m), nil
}

func (c admissionClient) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	m, err := c.peer.Validate(ctx, admissionRequestOut(r))
	if err != nil {
		return services.AdmissionResponse{}, errorIn(ctx, "admission", err)
	}
	if len(m.GetObject()) > 0 {
		return services.AdmissionResponse{}, faultf("admission: validating changed the object")
	}
	return admissionResponseIn(m), nil
}

func admissionRequestOut(r services.AdmissionRequest) *pb.AdmissionRequest {
	return &pb.AdmissionRequest{
		Uid: r.UID, Operation: string(r.Operation),
		Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name, User: userOut(r.User),
		Object: r.Object, OldObject: r.OldObject, Options: r.Options, DryRun: r.DryRun,
		OwnerTypes: ownerTypesOut(r.OwnerTypes),
	}
}

func ownerTypesOut(types []services.OwnerType) []*pb.OwnerType {
	var out []*pb.OwnerType
	for _, t := range types {
		out = append(out, &pb.OwnerType{ApiVersion: t.APIVersion, Kind: t.Kind, Resource: t.Resource, Namespaced: t.Namespaced})
	}
	return out
}

func ownerTypesIn(types []*pb.OwnerType) []services.OwnerType {
	var in []services.OwnerType
	for _, t := range types {
		in = append(in, services.OwnerType{APIVersion: t.GetApiVersion(), Kind: t.GetKind(), Resource: t.GetResource(), Namespaced: t.GetNamespaced()})
	}
	return in
}

func admissionRequestIn(m *pb.AdmissionRequest) services.AdmissionRequest {
	return services.AdmissionRequest{
		UID: m.GetUid(), Operation: services.Operation(m.GetOperation()),
		Group: m.GetGroup(), Version: m.GetVersion(), Kind: m.GetKind(), Resource: m.GetResource(), Subresource: m.GetSubresource(),
		Namespace: m.GetNamespace(), Name: m.GetName(), User: userIn(m.GetUser()),
		Object: m.GetObject(), OldObject: m.GetOldObject(), Options: m.GetOptions(), DryRun: m.GetDryRun(),
		OwnerTypes: ownerTypesIn(m.GetOwnerTypes()),
	}
}

func admissionAnswer(r services.AdmissionResponse, err error) (*pb.AdmissionResponse, error) {
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.AdmissionResponse{Object: r.Object, Warnings: r.Warnings, AuditAnnotations: r.AuditAnnotations}, nil
}

func admissionResponseIn(m *pb.AdmissionResponse) services.AdmissionResponse {
	return services.AdmissionResponse{Object: m.GetObject(), Warnings: m.GetWarnings(), AuditAnnotations: m.GetAuditAnnotations()}
}

var (
	_ pb.AdmissionServer = admissionServer{}
	_ services.Admission = admissionClient{}
)
