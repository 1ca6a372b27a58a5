package limits

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// podOrClaim holds the resource requirements of a pod or a PersistentVolumeClaim.
type podOrClaim struct {
	Spec struct {
		Containers     []container  `json:"containers"`
		InitContainers []container  `json:"initContainers"`
		Resources      requirements `json:"resources"` // of a claim
	} `json:"spec"`
}

type container struct {
	Resources requirements `json:"resources"`
}

// requirements are the requests and limits of a container or a claim.
type requirements struct {
	Requests amounts `json:"requests"`
	Limits   amounts `json:"limits"`
}

// total returns the requirements of a pod: for each resource the sum over its
// containers, or the largest of its init containers, whichever is more.
func (o *podOrClaim) total() requirements {
	requests, limits := make([]amounts, len(o.Spec.Containers)), make([]amounts, len(o.Spec.Containers))
	for i, c := range o.Spec.Containers {
		requests[i], limits[i] = c.Resources.Requests, c.Resources.Limits
	}
	whole := requirements{Requests: sum(requests), Limits: sum(limits)}
	for _, c := range o.Spec.InitContainers {
		raise(whole.Requests, c.Resources.Requests)
		raise(whole.Limits, c.Resources.Limits)
	}
	return whole
}

// sum adds up amounts. It omits resources that are not in every one of them: without a
// limit on one container, the pod has none.
func sum(all []amounts) amounts {
	total, named := amounts{}, map[string]int{}
	for _, one := range all {
		for name, q := range one {
			s := total[name].DeepCopy()
			s.Add(q)
			total[name] = s
			named[name]++
		}
	}
	maps.DeleteFunc(total, func(name string, _ resource.Quantity) bool { return named[name] < len(all) })
	return total
}

func raise(least, to amounts) {
	for name, q := range to {
		if known, ok := least[name]; !ok || known.Cmp(q) < 0 {
			least[name] = q
		}
	}
}

// check returns one error for each bound that is violated. hasLimits is false for claims,
// which have requests only.
func (i *item) check(w requirements, hasLimits bool) (violations []error) {
	violate := func(format string, args ...any) { violations = append(violations, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(i.Min)) {
		least := i.Min[name]
		request, requested := w.Requests[name]
		limit, limited := w.Limits[name]
		switch {
		case !requested:
			violate("minimum %s usage per %s is %s.  No request is specified", name, i.Type, least.String())
		case request.Cmp(least) < 0:
			violate("minimum %s usage per %s is %s, but request is %s", name, i.Type, least.String(), request.String())
		case limited && limit.Cmp(least) < 0:
			violate("minimum %s usage per %s is %s, but limit is %s", name, i.Type, least.String(), limit.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Max)) {
		most := i.Max[name]
		request, requested := w.Requests[name]
		limit, limited := w.Limits[name]
		switch {
		case hasLimits && !limited:
			violate("maximum %s usage per %s is %s.  No limit is specified", name, i.Type, most.String())
		case limited && limit.Cmp(most) > 0:
			violate("maximum %s usage per %s is %s, but limit is %s", name, i.Type, most.String(), limit.String())
		case requested && request.Cmp(most) > 0:
			violate("maximum %s usage per %s is %s, but request is %s", name, i.Type, most.String(), request.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.MaxRatio)) {
		most := i.MaxRatio[name]
		request, limit := w.Requests[name], w.Limits[name]
		switch {
		case !hasLimits:
		case request.Sign() <= 0:
			violate("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, i.Type, most.String())
		case limit.Sign() <= 0:
			violate("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, i.Type, most.String())
		case limit.AsApproximateFloat64() > most.AsApproximateFloat64()*request.AsApproximateFloat64():
			violate("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, i.Type, most.String(),
				limit.AsApproximateFloat64()/request.AsApproximateFloat64())
		}
	}
	return violations
}
