package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

type batchServer struct {
	pb.UnsafeAdmissionBatchServer
	impl services.AdmissionBatch
}

// RegisterAdmissionBatch offers batches in addition to RegisterAdmission.
func RegisterAdmissionBatch(s grpc.ServiceRegistrar, impl services.AdmissionBatch) {
	pb.RegisterAdmissionBatchServer(s, batchServer{impl: impl})
}

func (s batchServer) Mutate(ctx context.Context, m *pb.AdmissionRequests) (*pb.AdmissionResults, error) {
	return resultsOut(s.impl.MutateBatch(ctx, each(m.GetRequests(), admissionRequestIn)))
}

func (s batchServer) Validate(ctx context.Context, m *pb.AdmissionRequests) (*pb.AdmissionResults, error) {
	return resultsOut(s.impl.ValidateBatch(ctx, each(m.GetRequests(), admissionRequestIn)))
}

type batchClient struct{ peer pb.AdmissionBatchClient }

// NewAdmissionBatch returns the client of RegisterAdmissionBatch.
func NewAdmissionBatch(c grpc.ClientConnInterface) services.AdmissionBatch {
	return batchClient{pb.NewAdmissionBatchClient(c)}
}

func (c batchClient) MutateBatch(ctx context.Context, requests []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	m, err := c.peer.Mutate(ctx, &pb.AdmissionRequests{Requests: each(requests, admissionRequestOut)})
	if err != nil {
		return nil, batchError(ctx, err)
	}
	return resultsIn(m), nil
}

func (c batchClient) ValidateBatch(ctx context.Context, requests []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	m, err := c.peer.Validate(ctx, &pb.AdmissionRequests{Requests: each(requests, admissionRequestOut)})
	if err != nil {
		return nil, batchError(ctx, err)
	}
	results := resultsIn(m)
	for i := range results {
		if len(results[i].Response.Object) > 0 {
			results[i].Response, results[i].Err = services.AdmissionResponse{}, faultf("admission: validating changed the object")
		}
	}
	return results, nil
}

func batchError(ctx context.Context, err error) error {
	if status.Code(err) == codes.Unimplemented {
		return services.ErrNoBatch
	}
	return errorIn(ctx, "admission", err)
}

func resultsOut(results []services.AdmissionResult, err error) (*pb.AdmissionResults, error) {
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.AdmissionResults{Results: each(results, func(r services.AdmissionResult) *pb.AdmissionResult {
		m, err := admissionAnswer(r.Response, r.Err)
		if err != nil { // a refusal without notes
			m = &pb.AdmissionResponse{Refusal: statusOut(services.AsStatus(r.Err))}
		}
		return &pb.AdmissionResult{Uid: r.UID, Response: m}
	})}, nil
}

func resultsIn(m *pb.AdmissionResults) []services.AdmissionResult {
	return each(m.GetResults(), func(r *pb.AdmissionResult) services.AdmissionResult {
		if r.GetResponse() == nil {
			return services.AdmissionResult{UID: r.GetUid(), Err: faultf("admission: a result has no response")}
		}
		response, err := admissionResponseIn(r.GetResponse())
		return services.AdmissionResult{UID: r.GetUid(), Response: response, Err: err}
	})
}

var (
	_ pb.AdmissionBatchServer = batchServer{}
	_ services.AdmissionBatch = batchClient{}
)
