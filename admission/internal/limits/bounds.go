package limits

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/release"
)

// podOrClaim holds the resource requirements of a pod or a PersistentVolumeClaim.
type podOrClaim struct {
	Spec struct {
		Containers     []quota.Container  `json:"containers"`
		InitContainers []quota.Container  `json:"initContainers"`
		Resources      quota.Requirements `json:"resources"` // of the pod as a whole, or of a claim
	} `json:"spec"`
}

// total returns the requirements of a pod.
func (p *Plugin) total(o *podOrClaim) quota.Requirements {
	if p.Release.Before(release.V136) {
		return o.largest()
	}
	return quota.Total(o.Spec.Containers, o.Spec.InitContainers, o.Spec.Resources)
}

// largest returns the requirements of a pod as release 1.21 computes them: for each resource the
// sum over its containers, or the largest of its init containers, whichever is more.
func (o *podOrClaim) largest() quota.Requirements {
	requests, limits := make([]quota.Amounts, len(o.Spec.Containers)), make([]quota.Amounts, len(o.Spec.Containers))
	for i, c := range o.Spec.Containers {
		requests[i], limits[i] = c.Resources.Requests, c.Resources.Limits
	}
	whole := quota.Requirements{Requests: sum(requests), Limits: sum(limits)}
	for _, c := range o.Spec.InitContainers {
		whole.Requests = quota.Highest(whole.Requests, c.Resources.Requests)
		whole.Limits = quota.Highest(whole.Limits, c.Resources.Limits)
	}
	return whole
}

// sum adds up amounts. It omits resources that are not in every one of them: without a
// limit on one container, the pod has none.
func sum(all []quota.Amounts) quota.Amounts {
	total, named := quota.Amounts{}, map[string]int{}
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

// check returns one error for each bound that is violated. hasLimits is false for claims,
// which have requests only.
func (i *item) check(w quota.Requirements, hasLimits bool) (violations []error) {
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
