package updates

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// containerLists are the fields of a pod's spec with lists of type Container.
var containerLists = [...]string{"initContainers", "containers"}

// podChanges checks the immutable fields of a pod: in the spec only images, the deadline
// and further tolerations can change; a subresource adds ephemeral containers.
func podChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	before, after := rules.Object(old, "spec"), rules.Object(m, "spec")
	if before == nil || after == nil {
		return
	}
	if c.Subresource == "status" {
		statusChange(c, m, old, at)
		return
	}
	at = at.Field("spec")
	if _, mirrors := rules.Object(old, "metadata", "annotations")[c.Vocabulary.Qualified("", "config.mirror")]; mirrors {
		switch c.Subresource {
		case debugging:
			c.Forbidden(at, "static pods do not support ephemeral containers")
			return
		case resizing:
			c.Forbidden(at, "static pods cannot be resized")
			return
		}
	}
	switch c.Subresource {
	case debugging:
		debuggers(c, before, after, at)
		return
	case resizing:
		resized(c, old, after, at)
		return
	}
	for _, name := range containerLists {
		if len(rules.List(before, name)) != len(rules.List(after, name)) {
			c.Forbidden(at.Field(name), "pod updates may not add or remove containers")
			return
		}
	}
	gates(c, before, after, at)
	deadline(c, before, after, at)
	tolerations(c, before, after, at)
	was, is := fixedSpec(before), fixedSpec(after)
	if !c.Release.Before(gatedMutable) && len(rules.List(before, "schedulingGates")) > 0 {
		moreSelective(c, before, after, at)
		narrower(c, before, after, at)
		for spec, fixed := range map[*map[string]any]map[string]any{&before: was, &after: is} {
			delete(fixed, "nodeSelector")
			fixed["affinity"] = withoutNodeAffinity(*spec)
		}
	}
	if !rules.Same(was, is) {
		c.Forbidden(at, "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "+
			"`spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or "+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")
	}
}

// deadline checks that activeDeadlineSeconds is set or decreased, but never removed.
func deadline(c *rules.Check, before, after map[string]any, at *field.Path) {
	had, ok := rules.Whole(before["activeDeadlineSeconds"])
	if !ok {
		return
	}
	now, ok := rules.Whole(after["activeDeadlineSeconds"])
	if now < 0 {
		c.Invalid(at.Field("activeDeadlineSeconds"), now, "must be between 0 and 2147483647, inclusive")
	}
	switch {
	case !ok:
		c.Invalid(at.Field("activeDeadlineSeconds"), nil, "must not update from a positive integer to nil value")
	case now > had:
		c.Invalid(at.Field("activeDeadlineSeconds"), now, "must be less than or equal to previous value")
	}
}

// tolerations checks that tolerations are only added; tolerationSeconds can change.
func tolerations(c *rules.Check, before, after map[string]any, at *field.Path) {
	now := map[toleration]bool{}
	for _, t := range rules.Objects(after, "tolerations") {
		now[tolerationOf(t)] = true
	}
	for _, had := range rules.Objects(before, "tolerations") {
		if !now[tolerationOf(had)] {
			c.Forbidden(at.Field("tolerations"), "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

// toleration identifies a toleration: all fields but tolerationSeconds.
type toleration struct{ key, operator, value, effect string }

func tolerationOf(t map[string]any) toleration {
	return toleration{rules.Text(t, "key"), rules.Text(t, "operator"), rules.Text(t, "value"), rules.Text(t, "effect")}
}

// fixedSpec returns the immutable part of a pod's spec.
func fixedSpec(spec map[string]any) map[string]any {
	fixed := rules.Without(spec, "activeDeadlineSeconds", "tolerations", "containers", "initContainers", "schedulingGates")
	if rules.Number(fixed, "terminationGracePeriodSeconds") < 0 {
		fixed["terminationGracePeriodSeconds"] = int64(1) // negative values mean 1
	}
	for _, name := range containerLists {
		var list []any
		for _, container := range rules.Objects(spec, name) {
			list = append(list, rules.Without(container, "image"))
		}
		fixed[name] = list
	}
	return fixed
}
