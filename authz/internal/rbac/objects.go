package rbac

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/labelselector"
)

// Ref names a role or binding. Namespace is empty for those of the cluster.
type Ref struct{ Namespace, Name string }

// Rule is a stored PolicyRule.
type Rule struct {
	Verbs           []string `json:"verbs"`
	APIGroups       []string `json:"apiGroups"`
	Resources       []string `json:"resources"`
	ResourceNames   []string `json:"resourceNames"`
	NonResourceURLs []string `json:"nonResourceURLs"`

	text atomic.Pointer[string] // see String
}

// Role is the part of a Role or ClusterRole that decides.
type Role struct {
	ref    Ref
	labels labels.Set
	rules  []*Rule
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
	role := &Role{ref: Ref{o.Key.Namespace, o.Key.Name}, labels: o.Labels, rules: make([]*Rule, len(stored.Rules))}
	for i := range stored.Rules {
		role.rules[i] = &stored.Rules[i]
	}
	for i := range stored.AggregationRule.ClusterRoleSelectors {
		selector, err := labelselector.Parse(&stored.AggregationRule.ClusterRoleSelectors[i])
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
	namespace, name string
	roleKind        string
	role            Ref
	grants          []grant // sorted, one for each holder
}

// grant is what one binding grants to one of its subjects.
type grant struct {
	holder
	binding *Binding
	subject subject
}

// Key names the binding. Its namespace is empty for a ClusterRoleBinding.
func (b *Binding) Key() Ref { return Ref{b.namespace, b.name} }

// Grants returns the number of subjects of a binding, which may be nil.
func (b *Binding) Grants() int {
	if b == nil {
		return 0
	}
	return len(b.grants)
}

// Same reports whether two versions of a binding grant the same.
func (b *Binding) Same(other *Binding) bool {
	return b.roleKind == other.roleKind && b.role == other.role &&
		slices.EqualFunc(b.grants, other.grants, func(a, b grant) bool { return a.subject == b.subject })
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
	binding := &Binding{namespace: o.Key.Namespace, name: o.Key.Name, roleKind: stored.RoleRef.Kind, role: Ref{Name: stored.RoleRef.Name}}
	switch stored.RoleRef.Kind {
	case "ClusterRole":
	case "Role":
		binding.role.Namespace = o.Key.Namespace
	default:
		return nil, fmt.Errorf("roleRef of unknown kind %q", stored.RoleRef.Kind)
	}
	grants := make([]grant, 0, len(stored.Subjects))
	for _, s := range stored.Subjects {
		grants = append(grants, grant{holder: s.holder(), binding: binding, subject: s})
	}
	slices.SortStableFunc(grants, func(a, b grant) int { return a.holder.compare(b.holder) })
	binding.grants = slices.CompactFunc(grants, func(a, b grant) bool { return a.holder == b.holder })
	return binding, nil
}

// holder returns who a subject is.
func (s *subject) holder() holder {
	switch s.Kind {
	case "Group":
		return holder{true, s.Name}
	case "ServiceAccount":
		return holder{false, services.UserServiceAccountStart + s.Namespace + ":" + s.Name}
	}
	return holder{false, s.Name}
}

// reason says what allows a request. It is composed when it is asked for: whoever writes a binding
// chooses the number of its subjects.
func (g *grant) reason() string {
	what := "ClusterRoleBinding " + strconv.Quote(g.binding.name)
	if g.binding.namespace != "" {
		what = "RoleBinding " + strconv.Quote(g.binding.name+"/"+g.binding.namespace)
	}
	who := g.subject.Name
	if g.subject.Kind == "ServiceAccount" {
		who += "/" + g.subject.Namespace
	}
	return what + " of " + g.binding.roleKind + " " + strconv.Quote(g.binding.role.Name) + " to " + g.subject.Kind + " " + strconv.Quote(who)
}
