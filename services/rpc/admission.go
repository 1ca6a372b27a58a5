package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

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

func (s admissionServer) Refund(ctx context.Context, m *pb.RefundRequest) (*pb.RefundResponse, error) {
	refunds, ok := s.impl.(services.AdmissionRefunds)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "the service charges nothing")
	}
	if err := refunds.Refund(ctx, m.GetCharge()); err != nil {
		return nil, errorOut(err)
	}
	return &pb.RefundResponse{}, nil
}

func (s admissionServer) Review(stream grpc.BidiStreamingServer[pb.ReviewInput, pb.ReviewOutput]) error {
	return serveReview(s.impl, stream)
}

type admissionClient struct{ peer pb.AdmissionClient }

func NewAdmission(c grpc.ClientConnInterface) services.Admission {
	return admissionClient{pb.NewAdmissionClient(c)}
}

func (c admissionClient) Mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	m, err := c.peer.Mutate(ctx, admissionRequestOut(r))
	if r.Converter != nil && status.Code(err) == codes.FailedPrecondition {
		m, err = c.review(ctx, &pb.ReviewInput{Input: &pb.ReviewInput_Mutate{Mutate: admissionRequestOut(r)}}, r.Converter)
	}
	if err != nil {
		return services.AdmissionResponse{}, errorIn(ctx, "admission", err)
	}
	return admissionResponseIn(m)
}

func (c admissionClient) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	m, err := c.peer.Validate(ctx, admissionRequestOut(r))
	if r.Converter != nil && status.Code(err) == codes.FailedPrecondition {
		m, err = c.review(ctx, &pb.ReviewInput{Input: &pb.ReviewInput_Validate{Validate: admissionRequestOut(r)}}, r.Converter)
	}
	if err != nil {
		return services.AdmissionResponse{}, errorIn(ctx, "admission", err)
	}
	if len(m.GetObject()) > 0 {
		return services.AdmissionResponse{}, faultf("admission: validating changed the object")
	}
	return admissionResponseIn(m)
}

// Refund implements services.AdmissionRefunds.
func (c admissionClient) Refund(ctx context.Context, charge []byte) error {
	_, err := c.peer.Refund(ctx, &pb.RefundRequest{Charge: charge})
	if err != nil {
		return errorIn(ctx, "admission", err)
	}
	return nil
}

func admissionRequestOut(r services.AdmissionRequest) *pb.AdmissionRequest {
	return &pb.AdmissionRequest{
		Uid: r.UID, Operation: string(r.Operation),
		Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Resource, Subresource: r.Subresource,
		KindGroup: r.KindGroup, KindVersion: r.KindVersion, Namespace: r.Namespace, Name: r.Name, User: userOut(r.User),
		Object: r.Object, OldObject: r.OldObject, Options: r.Options, DryRun: r.DryRun,
		OwnerTypes: ownerTypesOut(r.OwnerTypes), Served: each(r.Served, servedTypeOut), Bypass: r.Bypass, AndValidate: r.AndValidate, ValidateEarly: r.ValidateEarly, Repairs: r.Repairs,
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

// admissionRequestIn returns a request from another process, where a call costs so much that its caller uses
// Unconcerned.
func admissionRequestIn(m *pb.AdmissionRequest) services.AdmissionRequest {
	return services.AdmissionRequest{
		UID: m.GetUid(), Operation: services.Operation(m.GetOperation()),
		Group: m.GetGroup(), Version: m.GetVersion(), Kind: m.GetKind(), Resource: m.GetResource(), Subresource: m.GetSubresource(),
		KindGroup: m.GetKindGroup(), KindVersion: m.GetKindVersion(), Namespace: m.GetNamespace(), Name: m.GetName(), User: userIn(m.GetUser()),
		Object: m.GetObject(), OldObject: m.GetOldObject(), Options: m.GetOptions(), DryRun: m.GetDryRun(),
		OwnerTypes: ownerTypesIn(m.GetOwnerTypes()), Served: each(m.GetServed(), servedTypeIn), Bypass: m.GetBypass(), AndValidate: m.GetAndValidate(), ValidateEarly: m.GetValidateEarly(), Repairs: m.GetRepairs(),
		Remembers: true,
	}
}

// admissionAnswer returns a refusal as part of the response if it has warnings,
// annotations or timings, because a gRPC error cannot carry them.
func admissionAnswer(r services.AdmissionResponse, err error) (*pb.AdmissionResponse, error) {
	m := &pb.AdmissionResponse{Object: r.Object, Warnings: r.Warnings, AuditAnnotations: r.AuditAnnotations,
		Timings: timingsOut(r.Timings), Validated: r.Validated, Charge: r.Charge, Unconcerned: r.Unconcerned, UnconcernedHere: r.UnconcernedHere}
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, services.ErrNoConverter):
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	case len(r.Warnings) == 0 && len(r.AuditAnnotations) == 0 && len(r.Timings) == 0:
		return nil, errorOut(err)
	}
	m.Object, m.Refusal = nil, statusOut(services.AsStatus(err))
	return m, nil
}

func admissionResponseIn(m *pb.AdmissionResponse) (services.AdmissionResponse, error) {
	r := services.AdmissionResponse{Object: m.GetObject(), Warnings: m.GetWarnings(), AuditAnnotations: m.GetAuditAnnotations(),
		Timings: timingsIn(m.GetTimings()), Validated: m.GetValidated(), Charge: m.GetCharge(), Unconcerned: m.GetUnconcerned(), UnconcernedHere: m.GetUnconcernedHere()}
	if m.GetRefusal() != nil {
		r.Object = nil
		return r, statusIn(m.GetRefusal())
	}
	return r, nil
}

func timingsOut(timings []services.Timing) []*pb.Timing {
	return each(timings, func(t services.Timing) *pb.Timing {
		return &pb.Timing{Name: t.Name, Took: durationpb.New(t.Took)}
	})
}

func timingsIn(timings []*pb.Timing) []services.Timing {
	return each(timings, func(t *pb.Timing) services.Timing {
		return services.Timing{Name: t.GetName(), Took: t.GetTook().AsDuration()}
	})
}

var (
	_ pb.AdmissionServer = admissionServer{}
	_ services.Admission = admissionClient{}

	_ services.AdmissionRefunds = admissionClient{}
)
