package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/admission/internal/permissions"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/labelselector"
	"github.com/portico-platform/portico/services/resource"
)

// grants rejects roles and bindings that grant permissions that the writer does not hold,
// unless the writer has the verb escalate or bind on the role. A change of a ClusterRole's
// labels is checked as well, because other roles aggregate by labels.
type grants struct {
	authz services.Authz
	store services.Reader
	group string // of roles and bindings
}

// role is the part of a role or a binding that grants permissions.
type role struct {
	Rules           []permissions.Rule `json:"rules"`
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
	if r.Operation == services.OperationUpdate {
		if err := json.Unmarshal(r.OldObject, &before); err != nil {
			return fmt.Errorf("reading the stored object: %w", err)
		}
		if same, err := review.SameButForCollection(r.Object, r.OldObject); err != nil || same {
			return err
		}
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
	aggregates := given.AggregationRule != nil || before.AggregationRule != nil
	if target.Verb == "escalate" && aggregates {
		// The rules also include roles that match the selectors later, so only a user with
		// all permissions may set them.
		if missing, err := permissions.Lacking(ctx, permissions.Everything(), held); err != nil {
			return err
		} else if len(missing) > 0 {
			return r.Forbid("must have cluster-admin privileges to use the aggregationRule")
		}
	}
	missing, err := permissions.Lacking(ctx, rules, held)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return r.Forbid("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
			r.User.Name, r.User.Groups, strings.Join(missing, "\n"))
	}
	return nil
}

// rules returns the rules that are granted: those of the role itself, or of the role that
// a binding refers to.
func (p grants) rules(ctx context.Context, target services.Attributes, given role) ([]permissions.Rule, error) {
	if target.Verb == "escalate" {
		return given.Rules, nil
	}
	key := resource.Key{GroupResource: resource.GroupResource{Group: p.group, Resource: target.Resource}, Name: target.Name}
	if target.Resource == "roles" {
		key.Namespace = target.Namespace
	}
	// A role that does not exist could be created later with any rules: NotFound.
	stored, err := p.store.Get(ctx, services.GetRequest{Key: key})
	if err != nil {
		return nil, err
	}
	return p.gather(ctx, stored, map[resource.Key]bool{key: true})
}

// gather returns the rules of a stored role, or those of all roles that it aggregates.
// Aggregations may be cyclic, so each role is visited once.
func (p grants) gather(ctx context.Context, stored services.Object, seen map[resource.Key]bool) ([]permissions.Rule, error) {
	var r role
	if err := json.Unmarshal(stored.JSON, &r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	if r.AggregationRule == nil {
		return r.Rules, nil
	}
	r.Rules = nil // a copy for readers, which may be old
	for i := range r.AggregationRule.ClusterRoleSelectors {
		selector, err := labelselector.Parse(&r.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
		}
		page, err := p.store.List(ctx, services.ListRequest{GroupResource: stored.Key.GroupResource, LabelSelector: selector.String()})
		if err != nil {
			return nil, err
		}
		if page.Next != "" {
			return permissions.Everything(), nil // too many to read: assume the maximum
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
