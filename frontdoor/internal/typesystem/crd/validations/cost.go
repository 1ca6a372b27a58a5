package validations

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of estimated cost: of one rule for all of its values, and of all rules of a
// schema.
const (
	maxRuleCost   = 10_000_000
	maxSchemaCost = 100_000_000
)

// costs adds up the estimated costs of the rules of a schema.
type costs struct {
	sum     uint64
	largest []cost // the largest ones, in descending order
}

type cost struct {
	at    *field.Path
	value uint64
}

// maxLargest is how many rules are named if their sum is too large.
const maxLargest = 4

// observe adds the cost of an expression, and the error of one that is too expensive.
func (c *checker) observe(at *field.Path, what string, value uint64) {
	if value > maxRuleCost && !c.Unchanged {
		c.add(field.Forbidden(at, exceeds(what, value, maxRuleCost)))
	}
	c.sum += min(value, math.MaxUint64-c.sum)
	if value < maxSchemaCost/100 {
		return
	}
	c.largest = append(c.largest, cost{at, value})
	slices.SortStableFunc(c.largest, func(a, b cost) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return 0
	})
	c.largest = c.largest[:min(len(c.largest), maxLargest)]
}

// total adds the errors of rules that are too expensive together.
func (c *checker) total(at *field.Path) {
	if c.sum <= maxSchemaCost {
		return
	}
	for _, large := range c.largest {
		c.add(field.Forbidden(large.at, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	c.add(field.Forbidden(at, exceeds(c.Extension+"validations estimated rule cost total for entire OpenAPIv3 schema", c.sum, maxSchemaCost)))
}

// exceeds returns the message of a cost beyond a limit.
func exceeds(what string, value, limit uint64) string {
	factor := float64(value) / float64(limit)
	by := fmt.Sprintf("%.1fx", factor)
	switch {
	case factor > 100:
		by = "more than 100x"
	case factor < 1.5:
		by = fmt.Sprintf("%fx", factor) // 1.0x would say nothing
	}
	return what + " exceeds budget by factor of " + by +
		" (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
}

// multiply returns the product, or the largest number if there is none larger.
func multiply(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}
