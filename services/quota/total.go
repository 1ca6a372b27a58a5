package quota

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Container is a container of a pod, as far as amounts depend on it.
type Container struct {
	Name          string       `json:"name"`
	Resources     Requirements `json:"resources"`
	RestartPolicy string       `json:"restartPolicy"`
}

// sidecar reports whether an init container runs beside the others until the pod ends.
func (c *Container) sidecar() bool { return c.RestartPolicy == "Always" }

// Requirements are the requests and limits of a container, a pod or a claim.
type Requirements struct {
	Requests Amounts `json:"requests"`
	Limits   Amounts `json:"limits"`
}

// Total returns the requirements of a pod without its overhead: the sum over its containers, or
// one of its init containers with the sidecars that were started before if that is more, or what
// the pod itself requests.
func Total(containers, initContainers []Container, own Requirements) Requirements {
	total, sidecars := Requirements{Amounts{}, Amounts{}}, Requirements{Amounts{}, Amounts{}}
	var starting []Requirements
	for i := range initContainers {
		each := &initContainers[i]
		if each.sidecar() {
			sidecars = sidecars.plus(each.Resources)
			starting = append(starting, sidecars)
		} else {
			starting = append(starting, sidecars.plus(each.Resources))
		}
	}
	for _, each := range containers {
		total = total.plus(each.Resources)
	}
	total = total.plus(sidecars)
	for _, each := range starting {
		total.Requests.raise(each.Requests)
		total.Limits.raise(each.Limits)
	}
	maps.Copy(total.Requests, own.Requests)
	maps.Copy(total.Limits, own.Limits)
	return total
}

// plus returns the sums.
func (w Requirements) plus(other Requirements) Requirements {
	return Requirements{w.Requests.Plus(other.Requests), w.Limits.Plus(other.Limits)}
}

// amounts returns the requests under all their names in quotas.
func (w Requirements) amounts() Amounts {
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

// raise raises amounts to those of another set that are higher, in place.
func (a Amounts) raise(to Amounts) {
	for name, q := range to {
		if known, ok := a[name]; !ok || known.Cmp(q) < 0 {
			a[name] = q
		}
	}
}

// Highest returns the highest amounts of several sets.
func Highest(all ...Amounts) Amounts {
	most := Amounts{}
	for _, each := range all {
		most.raise(each)
	}
	return most
}

// podStatus is what a node reports about the resources of a pod, which differ from its spec while
// it is resized.
type podStatus struct {
	Conditions     []podCondition    `json:"conditions"`
	Containers     []containerStatus `json:"containerStatuses"`
	InitContainers []containerStatus `json:"initContainerStatuses"`
	Resources      *Requirements     `json:"resources"`
	Allocated      Amounts           `json:"allocatedResources"`
}

type podCondition struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

type containerStatus struct {
	Name      string        `json:"name"`
	Resources *Requirements `json:"resources"`
	Allocated Amounts       `json:"allocatedResources"`
}

// infeasible reports whether the node has refused to give the pod what its spec requests.
func (s *podStatus) infeasible() bool {
	return slices.ContainsFunc(s.Conditions, func(c podCondition) bool { return c.Type == "PodResizePending" && c.Reason == "Infeasible" })
}

// of returns what a container, or a pod as a whole, may use: what is requested or what it has,
// whichever is more. What the node has refused does not count.
func (s *podStatus) of(requested Requirements, has *Requirements, allocated Amounts) Requirements {
	switch {
	case has == nil:
		return requested
	case s.infeasible():
		return Requirements{Highest(has.Requests, allocated), Highest(has.Limits)}
	}
	return Requirements{Highest(requested.Requests, has.Requests, allocated), Highest(requested.Limits, has.Limits)}
}

// ofAll is of for containers. The others keep what they request: init containers that have ended use nothing,
// whatever is reported.
func (s *podStatus) ofAll(containers []Container, statuses []containerStatus, others func(*Container) bool) []Container {
	all := slices.Clone(containers)
	for i := range all {
		at := slices.IndexFunc(statuses, func(c containerStatus) bool { return c.Name == all[i].Name })
		if at >= 0 && !others(&all[i]) {
			all[i].Resources = s.of(all[i].Resources, statuses[at].Resources, statuses[at].Allocated)
		}
	}
	return all
}

// ofPod returns what a pod uses: its total, plus its overhead. While it is resized, its node may
// have to find room for either size.
func (c Counter) ofPod(p *pod, status *podStatus) Amounts {
	containers, initContainers, own := p.Containers, p.InitContainers, p.Resources
	if !c.requested {
		containers = status.ofAll(containers, status.Containers, func(*Container) bool { return false })
		initContainers = status.ofAll(initContainers, status.InitContainers, func(c *Container) bool { return !c.sidecar() })
		has := status.of(own, status.Resources, status.Allocated)
		own = Requirements{has.Requests.Of(own.Requests), has.Limits.Of(own.Limits)}
	}
	total := Total(containers, initContainers, own)
	total.Requests.add(p.Overhead)
	for name, q := range p.Overhead { // what is not limited stays so
		if limit, limited := total.Limits[name]; limited && !limit.IsZero() {
			total.Limits.add(Amounts{name: q})
		}
	}
	used := total.amounts()
	for name, q := range total.Requests {
		if c.extended(name) {
			used["requests."+name] = q
		}
	}
	used["pods"] = *resource.NewQuantity(1, resource.DecimalSI)
	return used
}
