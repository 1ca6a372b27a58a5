package kinds

import (
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Check validates the value of the field, and each item of a list.
func (r *Field) Check(c *rules.Check, value any, at *field.Path) {
	if r.Forbidden != "" && !rules.Empty(value) {
		c.Forbidden(at, r.Forbidden)
		return
	}
	switch v := value.(type) {
	case []any:
		r.checkList(c, v, at)
	case map[string]any:
		if r.NotEmpty && len(v) == 0 {
			c.Required(at, r.Missing)
		}
		if r.MaxItems > 0 && len(v) > r.MaxItems {
			c.TooMany(at, len(v), r.MaxItems)
		}
		for key, item := range v {
			where := r.EntryPlace(at, key)
			if r.KeyCheck != nil {
				for _, problem := range r.KeyCheck(key) {
					c.Invalid(where, key, problem)
				}
			}
			if r.Checked != nil {
				r.CheckScalar(c, item, where)
			}
		}
	default:
		if value == "" && r.NotEmpty {
			c.Required(at, r.Missing)
		} else if value != "" { // absent required values are reported elsewhere
			r.CheckScalar(c, value, at)
		}
	}
}

func (r *Field) checkList(c *rules.Check, items []any, at *field.Path) {
	if r.NotEmpty && len(items) == 0 {
		c.Required(at, r.Missing)
	}
	switch {
	case r.MaxItems == 0 || len(items) <= r.MaxItems:
	case r.Says != "":
		c.Invalid(at, items, r.Says)
	default:
		c.TooMany(at, len(items), r.MaxItems)
	}
	for i, item := range items {
		if _, isObject := item.(map[string]any); !isObject {
			r.CheckScalar(c, item, r.ItemPlace(at, i))
		}
	}
	if len(r.Unique) > 0 {
		checkUnique(c, r.Unique, items, at)
	}
}

// checkUnique checks that no two items of a list have the same key.
func checkUnique(c *rules.Check, by []string, items []any, at *field.Path) {
	if len(items) < 2 {
		return
	}
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		key, value, where := rules.IdentityOf(item, by, &field.Path{Parent: at, Index: i})
		if seen[key] {
			c.Duplicate(where, value)
		}
		seen[key] = true
	}
}

// CheckScalar validates one value that is neither an object nor a list.
func (r *Field) CheckScalar(c *rules.Check, value any, at *field.Path) {
	if i, ok := rules.Whole(value); ok {
		r.checkNumber(c, value, i, at)
		return
	}
	s, ok := value.(string)
	if !ok {
		return
	}
	if len(r.Enum) > 0 && !slices.Contains(r.Enum, s) {
		if r.Says != "" {
			c.Invalid(at, s, r.Says)
		} else {
			c.NotSupported(at, s, r.Enum...)
		}
		return
	}
	if r.MaxLength > 0 && len(s) > r.MaxLength {
		c.TooLong(at, r.MaxLength)
	}
	if r.Expression != nil && !r.Expression.MatchString(s) {
		c.Invalid(at, value, "must match "+r.Pattern)
	}
	if r.Checked != nil {
		for _, problem := range r.Checked(s) {
			c.Invalid(at, value, problem)
		}
	}
}

// checkNumber validates the bounds of a number.
func (r *Field) checkNumber(c *rules.Check, value any, i int64, at *field.Path) {
	below, above := r.Min != nil && i < *r.Min, r.Max != nil && i > *r.Max
	switch {
	case !below && !above || r.None(value):
	case r.Says != "":
		c.Invalid(at, value, r.Says)
	case r.Min != nil && r.Max != nil:
		c.Invalid(at, value, fmt.Sprintf("must be between %d and %d, inclusive", *r.Min, *r.Max))
	case below:
		c.Invalid(at, value, fmt.Sprintf("must be greater than or equal to %d", *r.Min))
	case above:
		c.Invalid(at, value, fmt.Sprintf("must be less than or equal to %d", *r.Max))
	}
}
