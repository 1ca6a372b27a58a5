package limits

import (
	"fmt"
	"maps"
	"slices"
)

// asking is the part of pods and claims that says what they ask for.
type asking struct {
	Spec struct {
		Containers     []container `json:"containers"`
		InitContainers []container `json:"initContainers"`
		Resources      wants       `json:"resources"` // of a claim
	} `json:"spec"`
}

type container struct {
	Resources wants `json:"resources"`
}

// wants is what a thing asks for at least and uses at most.
type wants struct {
	Requests amounts `json:"requests"`
	Limits   amounts `json:"limits"`
}

// total returns what a pod asks for: all its containers together, or one of those that
// run before them if that is more. What not all of them limit is not limited.
func (o *asking) total() wants {
	sum := wants{Requests: amounts{}, Limits: amounts{}}
	limited := map[string]int{}
	for _, c := range o.Spec.Containers {
		add(sum.Requests, c.Resources.Requests)
		add(sum.Limits, c.Resources.Limits)
		for name := range c.Resources.Limits {
			limited[name]++
		}
	}
	maps.DeleteFunc(limited, func(_ string, n int) bool { return n < len(o.Spec.Containers) })
	for _, c := range o.Spec.InitContainers {
		raise(sum.Requests, c.Resources.Requests)
		raise(sum.Limits, c.Resources.Limits)
	}
	for name := range sum.Limits {
		if _, all := limited[name]; !all {
			delete(sum.Limits, name)
		}
	}
	return sum
}

func add(sum, more amounts) {
	for name, q := range more {
		s := sum[name].DeepCopy()
		s.Add(q)
		sum[name] = s
	}
}

func raise(least, to amounts) {
	for name, q := range to {
		if known := least[name]; known.Cmp(q) < 0 {
			least[name] = q
		}
	}
}

// check returns what is out of bounds. Claims have no limits to look at.
func (i *item) check(w wants, hasLimits bool) (violations []error) {
	violate := func(format string, args ...any) { violations = append(violations, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(i.Min)) {
		least := i.Min[name]
		request, asked := w.Requests[name]
		limit, limited := w.Limits[name]
		switch {
		case !asked:
			violate("minimum %s usage per %s is %s.  No request is specified", name, i.Type, least.String())
		case request.Cmp(least) < 0:
			violate("minimum %s usage per %s is %s, but request is %s", name, i.Type, least.String(), request.String())
		}
		if limited && limit.Cmp(least) < 0 {
			violate("minimum %s usage per %s is %s, but limit is %s", name, i.Type, least.String(), limit.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Max)) {
		most := i.Max[name]
		request, asked := w.Requests[name]
		limit, limited := w.Limits[name]
		switch {
		case hasLimits && !limited:
			violate("maximum %s usage per %s is %s.  No limit is specified", name, i.Type, most.String())
		case limited && limit.Cmp(most) > 0:
			violate("maximum %s usage per %s is %s, but limit is %s", name, i.Type, most.String(), limit.String())
		}
		if asked && request.Cmp(most) > 0 {
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
