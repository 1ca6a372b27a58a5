package quota

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// pod is the spec of a pod, as far as amounts and scopes depend on it.
type pod struct {
	Containers            []container `json:"containers"`
	InitContainers        []container `json:"initContainers"`
	Overhead              Amounts     `json:"overhead"`
	ActiveDeadlineSeconds *int64      `json:"activeDeadlineSeconds"`
	PriorityClassName     string      `json:"priorityClassName"`
	Affinity              *struct {
		PodAffinity     podTerms `json:"podAffinity"`
		PodAntiAffinity podTerms `json:"podAntiAffinity"`
	} `json:"affinity"`

	// What many quotas ask about, found out once.
	isBestEffort, isReachingOut bool
}

// settle finds out what the fields mean together.
func (p *pod) settle() { p.isBestEffort, p.isReachingOut = p.bestEffort(), p.reachesOut() }

// unasked names, in order, the amounts that some container does not ask for, of those
// that a quota may demand of each.
func (p *pod) unasked() []string {
	missing := map[string]bool{}
	for _, c := range slices.Concat(p.Containers, p.InitContainers) {
		asked := c.Resources.amounts()
		for _, name := range []string{"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"} {
			if _, ok := asked[name]; !ok {
				missing[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

type container struct {
	Resources wants `json:"resources"`
}

// wants is what a container asks for.
type wants struct {
	Requests Amounts `json:"requests"`
	Limits   Amounts `json:"limits"`
}

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

// ofPod returns what a pod uses: what its containers use together, or one of those
// that run before them if that is more, and what it costs to run it.
func (c Counter) ofPod(p *pod) Amounts {
	total := wants{Requests: Amounts{}, Limits: Amounts{}}
	for _, each := range p.Containers {
		total.Requests.add(each.Resources.Requests)
		total.Limits.add(each.Resources.Limits)
	}
	for _, each := range p.InitContainers {
		total.Requests.add(each.Resources.Requests.Beyond(total.Requests))
		total.Limits.add(each.Resources.Limits.Beyond(total.Limits))
	}
	total.Requests.add(p.Overhead)
	total.Limits.add(p.Overhead)
	used := total.amounts()
	for name, q := range total.Requests {
		if c.extended(name) {
			used["requests."+name] = q
		}
	}
	used["pods"] = *resource.NewQuantity(1, resource.DecimalSI)
	return used
}

// amounts returns what is asked for by all the names that quotas have for it.
func (w wants) amounts() Amounts {
	all := Amounts{}
	for name, q := range w.Requests {
		switch {
		case name == "cpu", name == "memory", name == "ephemeral-storage", strings.HasPrefix(name, "hugepages-"):
			all[name], all["requests."+name] = q, q
		}
	}
	for name, q := range w.Limits {
		switch name {
		case "cpu", "memory", "ephemeral-storage":
			all["limits."+name] = q
		}
	}
	return all
}

// in reports whether the pod fulfils one condition.
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
		return p.isReachingOut
	case "PriorityClass":
		return s.selects(p.PriorityClassName)
	}
	return false
}

// selects reports whether a value is one that the scope is about.
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

// bestEffort reports whether no container asks for processor time or memory.
func (p *pod) bestEffort() bool {
	return !slices.ContainsFunc(slices.Concat(p.Containers, p.InitContainers), func(c container) bool {
		for _, asked := range []Amounts{c.Resources.Requests, c.Resources.Limits} {
			for _, name := range []string{"cpu", "memory"} {
				if q, ok := asked[name]; ok && !q.IsZero() {
					return true
				}
			}
		}
		return false
	})
}

// reachesOut reports whether where the pod may run depends on pods of other namespaces.
func (p *pod) reachesOut() bool {
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
