package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// grants keeps users from giving, in a role or by binding one, what they do not
// have themselves, unless they hold the verb escalate or bind on that role.
type grants struct {
	authz services.Authz
	store services.Reader
	group string // of roles and bindings
}

// role is the part of a role or a binding that gives something.
type role struct {
	Rules           []policyRule `json:"rules"`
	AggregationRule *struct {
		ClusterRoleSelectors []metav1.LabelSelector `json:"clusterRoleSelectors"`
	} `json:"aggregationRule"`
	RoleRef  struct{ Kind, Name string } `json:"roleRef"`
	Subjects []any                       `json:"subjects"`
}

func (p grants) validate(ctx context.Context, r *review.Review) error {
	if r.Group != p.group || r.Subresource != "" || r.Operation != services.OperationCreate && r.Operation != services.OperationUpdate {
		return nil
	}
	if slices.Contains(r.User.Groups, services.GroupMasters) {
		return nil
	}
	var given, before role
	if err := json.Unmarshal(r.Object, &given); err != nil {
		return services.BadRequest("the object is not readable: %v", err)
	}
	if r.Operation == services.OperationUpdate && json.Unmarshal(r.OldObject, &before) == nil && reflect.DeepEqual(given, before) {
		return nil // what it gives stays as it is
	}
	target := services.Attributes{User: r.User, Verb: "escalate", Group: r.Group, Version: r.Version,
		Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
	if strings.HasSuffix(r.Resource, "bindings") {
		target.Verb, target.Name, target.Resource = "bind", given.RoleRef.Name, "clusterroles"
		if given.RoleRef.Kind == "Role" {
			target.Resource = "roles"
		}
	}
	decision, err := p.authz.Authorize(ctx, target)
	if err != nil || decision.Allowed {
		return err
	}
	rules, err := p.rules(ctx, target, given)
	if err != nil {
		return err
	}
	held, err := p.authz.Rules(ctx, services.RulesRequest{User: r.User, Namespace: r.Namespace})
	if err != nil {
		return err
	}
	if target.Verb == "escalate" && given.AggregationRule != nil && len(lacking(everything(), held)) > 0 {
		// Roles that are aggregated later are given too, so only who has everything may.
		return r.Forbid("must have cluster-admin privileges to use the aggregationRule")
	}
	if missing := lacking(rules, held); len(missing) > 0 {
		return r.Forbid("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
			r.User.Name, r.User.Groups, strings.Join(missing, "\n"))
	}
	return nil
}

// rules returns what is given: the rules of the role itself, or of the one that a
// binding names.
func (p grants) rules(ctx context.Context, target services.Attributes, given role) ([]policyRule, error) {
	if target.Verb == "escalate" {
		return given.Rules, nil
	}
	key := resource.Key{GroupResource: resource.GroupResource{Group: p.group, Resource: target.Resource}, Name: target.Name}
	if target.Resource == "roles" {
		key.Namespace = target.Namespace
	}
	// A role that does not exist gives nothing now and anything later: NotFound.
	stored, err := p.store.Get(ctx, services.GetRequest{Key: key})
	if err != nil {
		return nil, err
	}
	return p.gather(ctx, stored, map[resource.Key]bool{key: true})
}

// gather returns the rules of a stored role and of all that it aggregates. Stored
// roles may select each other in a circle, so each is visited once.
func (p grants) gather(ctx context.Context, stored services.Object, seen map[resource.Key]bool) ([]policyRule, error) {
	var r role
	if err := json.Unmarshal(stored.JSON, &r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	if r.AggregationRule == nil {
		return r.Rules, nil
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
		}
		page, err := p.store.List(ctx, services.ListRequest{GroupResource: stored.Key.GroupResource, LabelSelector: selector.String()})
		if err != nil {
			return nil, err
		}
		if page.Next != "" {
			return everything(), nil // more than anybody can look through
		}
		for _, part := range page.Objects {
			if seen[part.Key] {
				continue
			}
			seen[part.Key] = true
			rules, err := p.gather(ctx, part, seen)
			if err != nil {
				return nil, err
			}
			r.Rules = append(r.Rules, rules...)
		}
	}
	return r.Rules, nil
}
