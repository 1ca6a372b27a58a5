package batch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Limits of Jobs with indexes. Above manyCompletions, Jobs with limits per index have lower
// ones.
const (
	maxFailedIndexes  = 100_000
	manyCompletions   = 100_000
	maxOfMany         = 10_000
	maxSuccessRules   = 20
	maxIndexesOfRule  = 64 << 10
	requiresIndexMode = "requires indexed completion mode"
)

// backoffOfIndexes checks that only Jobs with indexes have limits per index, and the limits.
func backoffOfIndexes(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	if spec["maxFailedIndexes"] != nil && spec["backoffLimitPerIndex"] == nil {
		c.Required(at.Field("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
	}
	if spec["completionMode"] != "Indexed" {
		for _, name := range [...]string{"backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"} {
			if spec[name] != nil {
				c.Invalid(at.Field(name), spec[name], requiresIndexMode)
			}
		}
		return
	}
	failed, completions := rules.Number(spec, "maxFailedIndexes"), rules.Number(spec, "completions")
	if spec["completions"] != nil && failed > completions {
		c.Invalid(at.Field("maxFailedIndexes"), failed, "must be less than or equal to completions")
	}
	atMost := func(name string, limit int64, when string) {
		if value := rules.Number(spec, name); value > limit {
			c.Invalid(at.Field(name), value, fmt.Sprintf("must be less than or equal to %d%s", limit, when))
		}
	}
	atMost("maxFailedIndexes", maxFailedIndexes, "")
	if completions <= manyCompletions || spec["backoffLimitPerIndex"] == nil {
		return
	}
	if spec["maxFailedIndexes"] == nil {
		c.Required(at.Field("maxFailedIndexes"), fmt.Sprintf("must be specified when completions is above %d", manyCompletions))
	}
	when := fmt.Sprintf(" when completions are above %d and used with backoff limit per index", manyCompletions)
	atMost("parallelism", maxOfMany, when)
	atMost("maxFailedIndexes", maxOfMany, when)
}

// successOfIndexes checks that each rule of a success policy can hold.
func successOfIndexes(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	if spec["completionMode"] != "Indexed" || spec["completions"] == nil {
		return
	}
	policy, given := spec["successPolicy"].(map[string]any)
	if !given {
		return
	}
	at = at.Field("successPolicy").Field("rules")
	switch n := len(rules.List(policy, "rules")); {
	case n == 0:
		c.Required(at, "at least one rules must be specified when the successPolicy is specified")
	case n > maxSuccessRules:
		c.TooMany(at, n, maxSuccessRules)
	}
	completions := rules.Number(spec, "completions")
	for i, rule := range rules.Objects(policy, "rules") {
		where := at.Item(i)
		count, total := rules.Number(rule, "succeededCount"), completions
		if rule["succeededCount"] == nil && rule["succeededIndexes"] == nil {
			c.Required(where, "at least one of succeededCount or succeededIndexes must be specified")
		}
		if count < 0 {
			c.Invalid(where.Field("succeededCount"), count, "must be greater than or equal to 0")
		}
		if count > completions {
			c.Invalid(where.Field("succeededCount"), count, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions))
		}
		if rule["succeededIndexes"] == nil {
			continue
		}
		indexes := rules.Text(rule, "succeededIndexes")
		if len(indexes) > maxIndexesOfRule {
			c.TooLong(where.Field("succeededIndexes"), maxIndexesOfRule)
			continue
		}
		total, err := countIndexes(indexes, completions)
		if err != nil {
			c.Invalid(where.Field("succeededIndexes"), indexes, "error parsing succeededIndexes: "+err.Error())
		}
		if count > total {
			c.Invalid(where.Field("succeededCount"), count,
				fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", total))
		}
	}
}

// countIndexes returns the number of indexes in a list of increasing ones and of intervals,
// such as 1,3-5. All are below completions.
func countIndexes(list string, completions int64) (total int64, err error) {
	if list == "" {
		return 0, nil
	}
	last := int64(-1)
	for part := range strings.SplitSeq(list, ",") {
		first, end, err := interval(part, completions)
		if err != nil {
			return 0, err
		}
		if first <= last {
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, first)
		}
		total += end - first + 1
		last = end
	}
	return total, nil
}

// interval returns the first and the last index of one part of a list.
func interval(part string, completions int64) (first, last int64, err error) {
	limits := strings.Split(part, "-")
	if len(limits) > 2 {
		return 0, 0, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
	}
	var bounds [2]int64
	for i, limit := range limits {
		if bounds[i], err = strconv.ParseInt(limit, 10, 32); err != nil {
			return 0, 0, fmt.Errorf("cannot convert string to integer for index: %q", limit)
		}
		if bounds[i] >= completions || bounds[i] < 0 {
			return 0, 0, fmt.Errorf("too large index: %q", limit)
		}
	}
	if len(limits) == 1 {
		return bounds[0], bounds[0], nil
	}
	if bounds[0] >= bounds[1] {
		return 0, 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", bounds[0], bounds[1])
	}
	return bounds[0], bounds[1], nil
}
