package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

// AuthorizeBatch answers UNIMPLEMENTED, as an older authz does, if this one knows no batches.
func (s authzServer) AuthorizeBatch(ctx context.Context, m *pb.AuthorizeBatchRequest) (*pb.AuthorizeBatchResponse, error) {
	impl, ok := s.impl.(services.AuthzBatch)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "this authz does not support batches")
	}
	var requests []services.Attributes
	for _, of := range m.GetUsers() {
		user := userIn(of.GetUser())
		for _, request := range of.GetRequests() {
			requests = append(requests, attributesIn(request, user))
		}
	}
	results, err := impl.AuthorizeBatch(ctx, requests)
	if errors.Is(err, services.ErrNoBatch) {
		return nil, status.Error(codes.Unimplemented, err.Error())
	}
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.AuthorizeBatchResponse{Results: each(results, func(r services.AuthzResult) *pb.AuthzResult {
		if r.Err != nil {
			return &pb.AuthzResult{Error: statusOut(services.AsStatus(r.Err))}
		}
		return &pb.AuthzResult{Decision: decisionOut(r.Decision)}
	})}, nil
}

// AuthorizeBatch implements services.AuthzBatch.
func (c authzClient) AuthorizeBatch(ctx context.Context, requests []services.Attributes) ([]services.AuthzResult, error) {
	m, err := c.peer.AuthorizeBatch(ctx, batchOut(requests))
	if status.Code(err) == codes.Unimplemented {
		return nil, services.ErrNoBatch
	}
	if err != nil {
		return nil, errorIn(ctx, "authz", err)
	}
	if len(m.GetResults()) != len(requests) {
		return nil, faultf("authz: %d results for %d requests", len(m.GetResults()), len(requests))
	}
	return each(m.GetResults(), authzResultIn), nil
}

// batchOut names the user of consecutive requests once.
func batchOut(requests []services.Attributes) *pb.AuthorizeBatchRequest {
	m := &pb.AuthorizeBatchRequest{}
	for i, r := range requests {
		if i == 0 || !r.User.Equal(requests[i-1].User) {
			m.Users = append(m.Users, &pb.RequestsOfUser{User: userOut(r.User)})
		}
		of := m.GetUsers()[len(m.GetUsers())-1]
		of.Requests = append(of.GetRequests(), attributesOut(r, nil))
	}
	return m
}

func authzResultIn(m *pb.AuthzResult) (r services.AuthzResult) {
	switch {
	case m.GetError() != nil:
		r.Err = statusIn(m.GetError())
	case m.GetDecision() == nil:
		r.Err = faultf("authz: a result has neither a decision nor an error")
	default:
		r.Decision, r.Err = decisionIn(m.GetDecision())
	}
	return r
}

var _ services.AuthzBatch = authzClient{}
