package quota

import (
	"maps"
	"slices"
)

// pod is the part of a pod's spec that amounts and scopes depend on.
type pod struct {
	Containers     []Container `json:"containers"`
	InitContainers []Container `json:"initContainers"`
	// Resources are those of the whole pod.
	Resources             Requirements `json:"resources"`
	Overhead              Amounts      `json:"overhead"`
	ActiveDeadlineSeconds *int64       `json:"activeDeadlineSeconds"`
	PriorityClassName     string       `json:"priorityClassName"`
	Affinity              *struct {
		PodAffinity     podTerms `json:"podAffinity"`
		PodAntiAffinity podTerms `json:"podAntiAffinity"`
	} `json:"affinity"`

	// Computed once, because many quotas use it.
	isBestEffort, isCrossNamespace bool
}

// derive computes the derived fields.
func (p *pod) derive() { p.isBestEffort, p.isCrossNamespace = p.bestEffort(), p.crossesNamespaces() }

// unrequested returns, in order, the amounts that a quota may require of every container
// and that some container does not request.
func (p *pod) unrequested() []string {
	if p.whole() {
		return nil
	}
	missing := map[string]bool{}
	for _, c := range slices.Concat(p.Containers, p.InitContainers) {
		requested := c.Resources.amounts()
		for _, name := range []string{"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"} {
			if _, ok := requested[name]; !ok {
				missing[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// whole reports whether a pod has resources of its own, so that its containers need none.
func (p *pod) whole() bool { return len(p.Resources.Requests)+len(p.Resources.Limits) > 0 }

type podTerms struct {
	Required  []podTerm `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	Preferred []struct {
		Term podTerm `json:"podAffinityTerm"`
	} `json:"preferredDuringSchedulingIgnoredDuringExecution"`
}

type podTerm struct {
	Namespaces        []string `json:"namespaces"`
	NamespaceSelector any      `json:"namespaceSelector"`
}

// in reports whether the pod meets one condition.
func (p *pod) in(s Scope) bool {
	switch s.Name {
	case "Terminating":
		return p.ActiveDeadlineSeconds != nil
	case "NotTerminating":
		return p.ActiveDeadlineSeconds == nil
	case "BestEffort":
		return p.isBestEffort
	case "NotBestEffort":
		return !p.isBestEffort
	case "CrossNamespacePodAffinity":
		return p.isCrossNamespace
	case "PriorityClass":
		return s.selects(p.PriorityClassName)
	}
	return false
}

// selects reports whether a scope matches a value.
func (s Scope) selects(value string) bool {
	switch s.Operator {
	case "In":
		return slices.Contains(s.Values, value)
	case "NotIn":
		return !slices.Contains(s.Values, value)
	case "DoesNotExist":
		return value == ""
	}
	return value != ""
}

// bestEffort reports whether no container requests or limits CPU or memory.
func (p *pod) bestEffort() bool {
	all := slices.Concat(p.Containers, p.InitContainers)
	if p.whole() {
		all = []Container{{Resources: p.Resources}}
	}
	return !slices.ContainsFunc(all, func(c Container) bool {
		for _, requested := range []Amounts{c.Resources.Requests, c.Resources.Limits} {
			for _, name := range []string{"cpu", "memory"} {
				if q, ok := requested[name]; ok && !q.IsZero() {
					return true
				}
			}
		}
		return false
	})
}

// crossesNamespaces reports whether the pod's scheduling depends on pods of other namespaces.
func (p *pod) crossesNamespaces() bool {
	if p.Affinity == nil {
		return false
	}
	for _, terms := range []podTerms{p.Affinity.PodAffinity, p.Affinity.PodAntiAffinity} {
		all := terms.Required
		for _, preferred := range terms.Preferred {
			all = append(all, preferred.Term)
		}
		if slices.ContainsFunc(all, func(t podTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }) {
			return true
		}
	}
	return false
}
