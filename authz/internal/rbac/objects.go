package rbac

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/services"
)

// Ref names a role. Namespace is empty for a ClusterRole.
type Ref struct{ Namespace, Name string }

// Rule is a stored PolicyRule.
type Rule struct {
	Verbs           []string `json:"verbs"`
	APIGroups       []string `json:"apiGroups"`
	Resources       []string `json:"resources"`
	ResourceNames   []string `json:"resourceNames"`
	NonResourceURLs []string `json:"nonResourceURLs"`

	text string // see String
}

// Role is the part of a Role or ClusterRole that decides.
type Role struct {
	ref    Ref
	labels labels.Set
	rules  []Rule
	// aggregates selects the cluster roles whose rules this one includes.
	aggregates []labels.Selector
}

// ParseRole parses a stored Role or ClusterRole.
func ParseRole(o services.Object) (*Role, error) {
	var stored struct {
		Rules           []Rule `json:"rules"`
		AggregationRule struct {
			ClusterRoleSelectors []metav1.LabelSelector `json:"clusterRoleSelectors"`
		} `json:"aggregationRule"`
	}
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		return nil, err
	}
	for i := range stored.Rules {
		stored.Rules[i].text = stored.Rules[i].describe()
	}
	role := &Role{ref: Ref{o.Key.Namespace, o.Key.Name}, labels: o.Labels, rules: stored.Rules}
	for i := range stored.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&stored.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		role.aggregates = append(role.aggregates, selector)
	}
	return role, nil
}

// selects reports whether this role aggregates another.
func (r *Role) selects(other *Role) bool {
	for _, selector := range r.aggregates {
		if selector.Matches(other.labels) {
			return true
		}
	}
	return false
}

// Binding is the part of a RoleBinding or ClusterRoleBinding that decides.
type Binding struct {
	role    Ref
	holders []holder
	reasons []string // one per holder
}

type subject struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// ParseBinding parses a stored RoleBinding or ClusterRoleBinding.
func ParseBinding(o services.Object) (*Binding, error) {
	var stored struct {
		RoleRef  struct{ Kind, Name string } `json:"roleRef"`
		Subjects []subject                   `json:"subjects"`
	}
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		return nil, err
	}
	binding := &Binding{role: Ref{Name: stored.RoleRef.Name}}
	switch stored.RoleRef.Kind {
	case "ClusterRole":
	case "Role":
		binding.role.Namespace = o.Key.Namespace
	default:
		return nil, fmt.Errorf("roleRef of unknown kind %q", stored.RoleRef.Kind)
	}
	what := fmt.Sprintf("ClusterRoleBinding %q", o.Key.Name)
	if o.Key.Namespace != "" {
		what = fmt.Sprintf("RoleBinding %q", o.Key.Name+"/"+o.Key.Namespace)
	}
	for _, s := range stored.Subjects {
		h, who := s.holder(o.Key.Namespace)
		binding.holders = append(binding.holders, h)
		binding.reasons = append(binding.reasons,
			fmt.Sprintf("RBAC: allowed by %s of %s %q to %s %q", what, stored.RoleRef.Kind, stored.RoleRef.Name, s.Kind, who))
	}
	return binding, nil
}

// holder returns the subject of a binding in a namespace, and its name for messages.
func (s subject) holder(namespace string) (h holder, who string) {
	switch s.Kind {
	case "Group":
		return holder{namespace, true, s.Name}, s.Name
	case "ServiceAccount":
		return holder{namespace, false, services.UserServiceAccountStart + s.Namespace + ":" + s.Name}, s.Name + "/" + s.Namespace
	}
	return holder{namespace, false, s.Name}, s.Name
}
