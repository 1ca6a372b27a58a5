package resource

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// maxOptions is the limit on the amounts that a policy lists.
const maxOptions = 10

// deviceCapacity checks the policy of a capacity, which only a device has that is allocated
// several times.
func deviceCapacity(c *rules.Check, m map[string]any, shared bool, at *field.Path) {
	policy := rules.Object(m, "requestPolicy")
	listed, span := rules.List(policy, "validValues"), rules.Object(policy, "validRange")
	amount := policyOf{c, rules.Quantity(m["value"]), rules.Quantity(policy["default"])}
	_, hasDefault := policy["default"]
	switch {
	case policy == nil:
	case !shared:
		c.Forbidden(at, "allowMultipleAllocations must be true")
	case len(listed) > 0 && span != nil:
		c.Forbidden(at, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)
	case len(listed) > 0 && !hasDefault:
		c.Required(at.Field("default"), "required when validValues is defined")
	case len(listed) > 0:
		amount.oneOf(listed, at.Field("validValues"))
	case span != nil && !hasDefault:
		c.Required(at.Field("default"), "required when validRange is defined")
	case span != nil:
		amount.within(span, at.Field("validRange"))
	}
}

// policyOf checks a policy of requests for a capacity.
type policyOf struct {
	*rules.Check
	capacity, byDefault resource.Quantity
}

// oneOf checks a list of amounts.
func (p policyOf) oneOf(listed []any, at *field.Path) {
	if len(listed) > maxOptions {
		p.TooMany(at, len(listed), maxOptions)
		return
	}
	found, seen := false, map[int64]bool{}
	for i, value := range listed {
		option := rules.Quantity(value)
		if i > 0 {
			if before := rules.Quantity(listed[i-1]); before.Cmp(option) > 0 {
				p.Invalid(at.Item(i), value, "values must be sorted in ascending order")
			}
		}
		if option.Cmp(p.capacity) > 0 {
			p.Invalid(at.Item(i), value, "option is larger than capacity value: "+p.capacity.String())
		}
		if seen[option.Value()] {
			p.Duplicate(at.Item(i), value)
		}
		seen[option.Value()] = true
		found = found || option.Cmp(p.byDefault) == 0
	}
	if !found {
		p.Invalid(at, p.byDefault.String(), "default value is not valid according to the requestPolicy")
	}
}

// within checks a range of amounts.
func (p policyOf) within(span map[string]any, at *field.Path) {
	if span["min"] == nil {
		p.Required(at.Field("min"), "required when validRange is defined")
		return
	}
	least := rules.Quantity(span["min"])
	if least.Cmp(p.capacity) > 0 {
		p.Invalid(at.Field("min"), span["min"], "min is larger than capacity value: "+p.capacity.String())
	}
	if p.byDefault.Cmp(least) < 0 {
		p.Invalid(at.Field("min"), p.byDefault.String(), "default is less than min: "+least.String())
	}
	steps := []resource.Quantity{p.byDefault}
	if span["max"] != nil {
		most := rules.Quantity(span["max"])
		steps = append(steps, most)
		if least.Cmp(most) > 0 {
			p.Invalid(at.Field("max"), span["min"], "min is larger than max: "+most.String())
		}
		if most.Cmp(p.capacity) > 0 {
			p.Invalid(at.Field("max"), span["max"], "max is larger than capacity value: "+p.capacity.String())
		}
		if p.byDefault.Cmp(most) > 0 {
			p.Invalid(at.Field("max"), p.byDefault.String(), "default is more than max: "+most.String())
		}
	}
	if span["step"] != nil {
		p.steps(least, rules.Quantity(span["step"]), steps, at.Field("step"))
	}
}

// steps checks that amounts are a number of steps above the least one.
func (p policyOf) steps(least, step resource.Quantity, amounts []resource.Quantity, at *field.Path) {
	if step.Value() <= 0 {
		p.Invalid(at, step.String(), "must be greater than zero")
		return
	}
	first := least.DeepCopy()
	if first.Add(step); first.Cmp(p.capacity) > 0 {
		p.Invalid(at, step.String(), fmt.Sprintf("one step %s is larger than capacity value: %s", first.String(), p.capacity.String()))
	}
	for _, amount := range amounts {
		if (amount.Value()-least.Value())%step.Value() != 0 {
			p.Invalid(at, amount.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", step.String(), least.String()))
		}
	}
}
