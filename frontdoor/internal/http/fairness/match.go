package fairness

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	flowcontrol "k8s.io/api/flowcontrol/v1"

	"github.com/portico-platform/portico/services"
)

// flow is a FlowSchema in use.
type flow struct {
	Flow
	level *level
	uids  []string
	hash  uint64
	*flowMetrics
}

// table holds the flows in the order in which they are matched.
type table struct{ flows []*flow }

// seed makes it impossible to predict which flows share queues.
var seed = maphash.MakeSeed()

// newTable leaves out flows whose level does not exist. Metrics of before are kept.
func newTable(flows []Flow, levels map[string]*level, before *table) *table {
	kept := map[[2]string]*flowMetrics{}
	if before != nil {
		for _, f := range before.flows {
			kept[[2]string{f.Name, f.Level}] = f.flowMetrics
		}
	}
	t := &table{}
	add := func(spec Flow) {
		level := levels[spec.Level]
		if level == nil {
			return
		}
		f := &flow{Flow: spec, level: level, uids: []string{spec.UID}, hash: maphash.String(seed, spec.Name), flowMetrics: kept[[2]string{spec.Name, spec.Level}]}
		if f.flowMetrics == nil {
			f.flowMetrics = newFlowMetrics(spec.Level, spec.Name)
		}
		t.flows = append(t.flows, f)
	}
	for _, f := range flows {
		add(f)
	}
	exists := func(name string) bool {
		return slices.ContainsFunc(t.flows, func(f *flow) bool { return f.Name == name })
	}
	for _, f := range mandatoryFlows() {
		if !exists(f.Name) {
			add(f)
		}
	}
	slices.SortStableFunc(t.flows, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(a.Precedence, b.Precedence), strings.Compare(a.Name, b.Name))
	})
	return t
}

// find returns the first flow that matches a request. What none matches is in the flow catch-all.
func (t *table) find(a *services.Attributes) *flow {
	var last *flow
	for _, f := range t.flows {
		for i := range f.Rules {
			if matches(&f.Rules[i], a) {
				return f
			}
		}
		if f.Name == CatchAll {
			last = f
		}
	}
	return last
}

// distinguish returns the user or namespace whose requests form a flow.
func (f *flow) distinguish(a *services.Attributes) string {
	switch f.By {
	case flowcontrol.FlowDistinguisherMethodByUserType:
		return a.User.Name
	case flowcontrol.FlowDistinguisherMethodByNamespaceType:
		return a.Namespace
	}
	return ""
}

// entropy returns a number from which the queues of a part of the flow follow.
func (f *flow) entropy(distinguisher string) uint64 {
	const odd = 0x9E3779B97F4A7C15
	return (f.hash ^ maphash.String(seed, distinguisher)) * odd
}

func matches(rule *flowcontrol.PolicyRulesWithSubjects, a *services.Attributes) bool {
	return matchesSubject(rule.Subjects, &a.User) && (a.Path != "" && matchesPath(rule.NonResourceRules, a) ||
		a.Path == "" && matchesResource(rule.ResourceRules, a))
}

func matchesSubject(subjects []flowcontrol.Subject, user *services.UserInfo) bool {
	for i := range subjects {
		s := &subjects[i]
		switch {
		case s.User != nil && s.Kind == flowcontrol.SubjectKindUser:
			if s.User.Name == everything || s.User.Name == user.Name {
				return true
			}
		case s.Group != nil && s.Kind == flowcontrol.SubjectKindGroup:
			if s.Group.Name == everything || slices.Contains(user.Groups, s.Group.Name) {
				return true
			}
		case s.ServiceAccount != nil && s.Kind == flowcontrol.SubjectKindServiceAccount:
			if matchesAccount(s.ServiceAccount, user.Name) {
				return true
			}
		}
	}
	return false
}

func matchesAccount(s *flowcontrol.ServiceAccountSubject, user string) bool {
	rest, ok := strings.CutPrefix(user, services.UserServiceAccountStart)
	if !ok {
		return false
	}
	rest, ok = strings.CutPrefix(rest, s.Namespace)
	if !ok {
		return false
	}
	name, ok := strings.CutPrefix(rest, ":")
	return ok && (s.Name == everything || s.Name == name)
}

func matchesResource(rules []flowcontrol.ResourcePolicyRule, a *services.Attributes) bool {
	for i := range rules {
		r := &rules[i]
		if !has(r.Verbs, a.Verb) || !has(r.APIGroups, a.Group) || !hasResource(r.Resources, a) {
			continue
		}
		if a.Namespace == "" && r.ClusterScope || a.Namespace != "" && has(r.Namespaces, a.Namespace) {
			return true
		}
	}
	return false
}

func matchesPath(rules []flowcontrol.NonResourcePolicyRule, a *services.Attributes) bool {
	for i := range rules {
		if !has(rules[i].Verbs, a.Verb) {
			continue
		}
		for _, path := range rules[i].NonResourceURLs {
			if path == everything || path == a.Path {
				return true
			}
			// As in Kubernetes, a path covers all below it, with or without "/*".
			stem := strings.TrimSuffix(strings.TrimSuffix(path, "*"), "/")
			if len(a.Path) > len(stem) && a.Path[len(stem)] == '/' && strings.HasPrefix(a.Path, stem) {
				return true
			}
		}
	}
	return false
}

func has(list []string, value string) bool {
	for _, v := range list {
		if v == everything || v == value {
			return true
		}
	}
	return false
}

// hasResource compares without joining the names of the resource and the subresource.
func hasResource(list []string, a *services.Attributes) bool {
	for _, v := range list {
		if v == everything {
			return true
		}
		if a.Subresource == "" {
			if v == a.Resource {
				return true
			}
			continue
		}
		if n := len(a.Resource); len(v) == n+1+len(a.Subresource) && v[:n] == a.Resource && v[n] == '/' && v[n+1:] == a.Subresource {
			return true
		}
	}
	return false
}
