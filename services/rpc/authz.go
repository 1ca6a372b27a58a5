package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

type authzServer struct {
	pb.UnsafeAuthzServer
	impl services.Authz
}

func RegisterAuthz(s grpc.ServiceRegistrar, impl services.Authz) {
	pb.RegisterAuthzServer(s, authzServer{impl: impl})
}

func (s authzServer) Authorize(ctx context.Context, m *pb.Attributes) (*pb.Decision, error) {
	d, err := s.impl.Authorize(ctx, attributesIn(m, userIn(m.GetUser())))
	if err != nil {
		return nil, errorOut(err)
	}
	return decisionOut(d), nil
}

func attributesIn(m *pb.Attributes, user services.UserInfo) services.Attributes {
	return services.Attributes{
		User: user, Verb: m.GetVerb(), Path: m.GetPath(),
		Group: m.GetGroup(), Version: m.GetVersion(), Resource: m.GetResource(), Subresource: m.GetSubresource(),
		Namespace: m.GetNamespace(), Name: m.GetName(), FieldSelector: m.GetFieldSelector(), LabelSelector: m.GetLabelSelector(),
		NotBefore: m.GetNotBefore(),
	}
}

func decisionOut(d services.Decision) *pb.Decision {
	return &pb.Decision{Allowed: d.Allowed, Denied: d.Denied, Reason: d.Reason, EvaluationError: d.EvaluationError,
		Revision: d.Revision, AnyName: d.AnyName, Rule: d.Rule, Miss: d.Miss}
}

func (s authzServer) Rules(ctx context.Context, m *pb.RulesRequest) (*pb.RulesResponse, error) {
	rules, err := s.impl.Rules(ctx, services.RulesRequest{User: userIn(m.GetUser()), Namespace: m.GetNamespace()})
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.RulesResponse{
		Incomplete: rules.Incomplete, EvaluationError: rules.EvaluationError,
		Resource: each(rules.Resource, func(r services.ResourceRule) *pb.ResourceRule {
			return &pb.ResourceRule{Verbs: r.Verbs, ApiGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames}
		}),
		NonResource: each(rules.NonResource, func(r services.NonResourceRule) *pb.NonResourceRule {
			return &pb.NonResourceRule{Verbs: r.Verbs, Paths: r.Paths}
		}),
	}, nil
}

type authzClient struct{ peer pb.AuthzClient }

func NewAuthz(c grpc.ClientConnInterface) services.Authz {
	return authzClient{pb.NewAuthzClient(c)}
}

func (c authzClient) Authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	m, err := c.peer.Authorize(ctx, attributesOut(a, userOut(a.User)))
	if err != nil {
		return services.Decision{}, errorIn(ctx, "authz", err)
	}
	return decisionIn(m)
}

func attributesOut(a services.Attributes, user *pb.UserInfo) *pb.Attributes {
	return &pb.Attributes{
		User: user, Verb: a.Verb, Path: a.Path,
		Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.Name, FieldSelector: a.FieldSelector, LabelSelector: a.LabelSelector,
		NotBefore: a.NotBefore,
	}
}

func decisionIn(m *pb.Decision) (services.Decision, error) {
	if m.GetAllowed() && m.GetDenied() {
		return services.Decision{}, faultf("authz: the response is both allowed and denied")
	}
	return services.Decision{
		Allowed: m.GetAllowed(), Denied: m.GetDenied(),
		Reason: m.GetReason(), EvaluationError: m.GetEvaluationError(),
		Revision: m.GetRevision(), AnyName: m.GetAnyName(), Rule: m.GetRule(), Miss: m.GetMiss(),
	}, nil
}

func (c authzClient) Rules(ctx context.Context, r services.RulesRequest) (services.Rules, error) {
	m, err := c.peer.Rules(ctx, &pb.RulesRequest{User: userOut(r.User), Namespace: r.Namespace})
	if err != nil {
		return services.Rules{}, errorIn(ctx, "authz", err)
	}
	return services.Rules{
		Incomplete: m.GetIncomplete(), EvaluationError: m.GetEvaluationError(),
		Resource: each(m.GetResource(), func(r *pb.ResourceRule) services.ResourceRule {
			return services.ResourceRule{
				Verbs: r.GetVerbs(), APIGroups: r.GetApiGroups(),
				Resources: r.GetResources(), ResourceNames: r.GetResourceNames(),
			}
		}),
		NonResource: each(m.GetNonResource(), func(r *pb.NonResourceRule) services.NonResourceRule {
			return services.NonResourceRule{Verbs: r.GetVerbs(), Paths: r.GetPaths()}
		}),
	}, nil
}

var (
	_ pb.AuthzServer = authzServer{}
	_ services.Authz = authzClient{}
)
