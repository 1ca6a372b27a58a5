// Package podsecurity lets only those pods through that a PodSecurityPolicy allows which
// their author, or the account that they run as, may use. A policy also fills in what a
// pod leaves open. It decides which policy counts, what it fills in and what it refuses.
// It serves PodSecurityPolicy under "Admission plugins" of the specification.
package podsecurity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Plugin applies the policies to pods.
type Plugin struct {
	Policies   review.Collection[Policy]
	Authz      services.Authz
	Vocabulary vocabulary.Vocabulary
}

// verdict is what the policies make of a pod.
type verdict struct {
	pod    *corev1.Pod // with what the policy fills in; nil when none allows the pod
	policy string
	wrong  field.ErrorList // of the policies that may be used
}

// why describes what is wrong.
func (v verdict) why() any {
	if len(v.wrong) > maxWrong {
		return fmt.Sprintf("%v and more", v.wrong[:maxWrong])
	}
	return v.wrong
}

// Mutate fills in what a policy says, preferably one that fills in nothing. It refuses
// with Forbidden (403).
func (p Plugin) Mutate(ctx context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, "", "pods") {
		return nil
	}
	pod, err := podOf(r)
	if err != nil {
		return err
	}
	v, err := p.judge(ctx, r, pod, true)
	if err != nil {
		return err
	}
	if v.pod == nil {
		return r.Forbid("PodSecurityPolicy: unable to admit pod: %v", v.why())
	}
	if v.pod.Annotations == nil {
		v.pod.Annotations = map[string]string{}
	}
	v.pod.Annotations[p.Vocabulary.Qualified("", "psp")] = v.policy
	r.Annotate(map[string]string{p.audited("admit-policy"): v.policy})
	return write(r, pod, v.pod)
}

// Validate refuses with Forbidden (403) pods that no policy allows as they are. Updates
// that only the garbage collector could have made pass.
func (p Plugin) Validate(ctx context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, "", "pods") && !r.Is(services.OperationUpdate, "", "pods") {
		return nil
	}
	if r.Operation == services.OperationUpdate {
		current, err := r.Current()
		if err != nil {
			return err
		}
		if same, err := review.SameButForCollection(current, r.OldObject); err != nil || same {
			return err
		}
	}
	pod, err := podOf(r)
	if err != nil {
		return err
	}
	v, err := p.judge(ctx, r, pod, false)
	if err != nil {
		return err
	}
	if v.pod == nil {
		return r.Forbid("PodSecurityPolicy: unable to validate pod: %v", v.why())
	}
	r.Annotate(map[string]string{p.audited("validate-policy"): v.policy})
	return nil
}

func (p Plugin) audited(what string) string {
	return p.Vocabulary.Group("podsecuritypolicy.policy.") + "/" + what
}

func podOf(r *review.Review) (*corev1.Pod, error) {
	object, err := r.Current()
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(object, &pod); err != nil {
		return nil, services.BadRequest("the pod is not readable: %v", err)
	}
	return &pod, nil
}

// judge tries the policies, in the order of their names; when the pod must not be
// changed, the one that allowed it before goes first.
func (p Plugin) judge(ctx context.Context, r *review.Review, pod *corev1.Pod, change bool) (verdict, error) {
	policies := slices.DeleteFunc(slices.Clone(p.Policies.List("")), func(policy Policy) bool { return policy.broken != nil })
	if len(policies) == 0 {
		return verdict{}, r.Forbid("PodSecurityPolicy: no providers available to validate pod request")
	}
	before := pod.Annotations[p.Vocabulary.Qualified("", "psp")]
	slices.SortFunc(policies, func(a, b Policy) int {
		if first := a.Metadata.Name == before; !change && a.Metadata.Name != b.Metadata.Name && (first || b.Metadata.Name == before) {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return strings.Compare(a.Metadata.Name, b.Metadata.Name)
	})
	var found, refused verdict
	for i := range policies {
		c := check{policy: &policies[i], vocabulary: p.Vocabulary, pod: pod.DeepCopy()}
		c.fill()
		wrong := c.validate()
		changed := !equality.Semantic.DeepEqual(pod, c.pod)
		if len(wrong) == 0 && changed && (!change || found.pod != nil) {
			continue
		}
		name := policies[i].Metadata.Name
		may, err := p.mayUse(ctx, r, pod.Spec.ServiceAccountName, name)
		switch {
		case err != nil:
			return verdict{}, err
		case !may:
		case len(wrong) > 0:
			refused.wrong = append(refused.wrong, wrong[:min(len(wrong), maxWrong+1-len(refused.wrong))]...)
		case !changed:
			return verdict{pod: c.pod, policy: name}, nil
		default:
			found = verdict{pod: c.pod, policy: name}
		}
	}
	if found.pod != nil {
		return found, nil
	}
	return refused, nil
}

// mayUse reports whether the account of a pod or its author may use a policy.
func (p Plugin) mayUse(ctx context.Context, r *review.Review, account, policy string) (bool, error) {
	users := []services.UserInfo{r.User}
	if account != "" {
		users = []services.UserInfo{{Name: services.UserServiceAccountStart + r.Namespace + ":" + account,
			Groups: []string{services.GroupServiceAccounts, services.GroupServiceAccounts + ":" + r.Namespace}}, r.User}
	}
	for _, user := range users {
		for _, group := range []string{"policy", "extensions"} {
			decision, err := p.Authz.Authorize(ctx, services.Attributes{User: user, Verb: "use", Group: group, Version: "*",
				Resource: "podsecuritypolicies", Namespace: r.Namespace, Name: policy})
			if err != nil || decision.Allowed {
				return decision.Allowed && err == nil, err
			}
		}
	}
	return false, nil
}

// Parse reads a stored policy.
func Parse(o services.Object) (Policy, error) {
	var p Policy
	if err := json.Unmarshal(o.JSON, &p); err != nil {
		return p, err
	}
	if p.Metadata.Name == "" {
		p.Metadata.Name = o.Key.Name
	}
	p.broken = p.Spec.check()
	return p, nil
}

// check returns why a policy cannot be applied; such a policy allows nothing.
func (s *spec) check() error {
	for _, x := range []struct {
		field string
		rule  rule
		known []string
	}{
		{"runAsUser", s.RunAsUser, []string{mustRunAs, mustRunAsNonRoot, runAsAny}},
		{"runAsGroup", s.group(), []string{mustRunAs, mayRunAs, runAsAny}},
		{"fsGroup", s.FSGroup, []string{mustRunAs, mayRunAs, runAsAny}},
		{"supplementalGroups", s.SupplementalGroups, []string{mustRunAs, mayRunAs, runAsAny}},
		{"seLinux", rule{Rule: s.SELinux.Rule, Ranges: []idRange{{}}}, []string{mustRunAs, runAsAny}},
	} {
		if !slices.Contains(x.known, x.rule.Rule) {
			return fmt.Errorf("spec.%s.rule: %q is unknown", x.field, x.rule.Rule)
		}
		if (x.rule.Rule == mustRunAs || x.rule.Rule == mayRunAs) && len(x.rule.Ranges) == 0 {
			return fmt.Errorf("spec.%s.ranges: required for %s", x.field, x.rule.Rule)
		}
	}
	if s.SELinux.Rule == mustRunAs && s.SELinux.SELinuxOptions == nil {
		return fmt.Errorf("spec.seLinux.seLinuxOptions: required for %s", mustRunAs)
	}
	return nil
}
