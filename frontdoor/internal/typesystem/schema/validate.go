package schema

import (
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services"
)

// check is one walk of Validate over an object.
type check struct {
	rules.Check
	budget *budget.Budget
}

// object validates an object with declared fields. old is nil for a create, and where the
// stored object has no value.
func (c *check) object(n *node, m, old map[string]any, at *field.Path) {
	for _, name := range n.required {
		if f := n.fields[name]; rules.Empty(m[name]) || f.rules.None(m[name]) {
			c.Required(f.rules.Place(at, name), f.rules.Why())
		}
	}
	for _, name := range n.blank {
		if f := n.fields[name]; rules.Empty(m[name]) {
			c.scalar(f.rules, f.blank(m[name]), f.rules.Place(at, name))
		}
	}
	surplus := n.rules.Surplus(m)
	for name, value := range m {
		f := n.fields[name]
		if f == nil || f.rules == nil && f.plain || slices.Contains(surplus, name) {
			continue
		}
		below := f.rules.Place(at, name)
		if at == nil && name == "status" {
			c.reported(f.node, value, old[name], below)
			continue
		}
		switch {
		case f.rules == nil || rules.Empty(value) && slices.Contains(n.required, name):
		case f.kind == intOrString, f.stated && value == "" && !f.rules.NotEmpty:
			c.scalar(f.rules, value, below) // "" is not a valid percentage, or is a value like any other
		default:
			c.field(f.rules, value, below)
		}
		if !f.plain && (f.rules == nil || !f.rules.Unchecked) {
			c.value(f.node, value, old[name], below)
		}
	}
	if n.rules != nil {
		c.ruleset(n.rules, m, old, at)
	}
}

// reported validates the status in a write of the status. Only the rules of the status
// itself apply, not those of values below it: controllers are trusted to report them.
func (c *check) reported(n *node, value, old any, at *field.Path) {
	status, ok := value.(map[string]any)
	if !ok || n.rules == nil || c.Subresource != "status" {
		return
	}
	for name, r := range n.rules.Fields {
		if given, ok := status[name]; ok {
			c.field(r, given, at.Field(name))
		}
	}
	before, _ := old.(map[string]any)
	c.ruleset(n.rules, status, before, at)
}

// value validates an object, map or list.
func (c *check) value(n *node, value, old any, at *field.Path) {
	if c.budget.Over() {
		return
	}
	if n.custom != nil {
		c.custom(n, value, old, at)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		before, _ := old.(map[string]any)
		if n.kind == object {
			c.object(n, v, before, at)
			return
		}
		if n.kind != dictionary {
			return
		}
		for key, item := range v {
			below := field.Path{Parent: at, Name: key, IsKey: true}
			c.value(n.item, item, before[key], &below)
		}
	case []any:
		if n.kind != list || n.item.plain {
			return
		}
		for i, item := range v {
			below := field.Path{Parent: at, Index: i}
			c.value(n.item, item, nil, &below)
		}
	}
}

// ruleset validates an object against the rules that concern several fields.
func (c *check) ruleset(r *kinds.Rules, m, old map[string]any, at *field.Path) {
	r.CheckUnions(&c.Check, m, at)
	if old != nil {
		for _, name := range r.Fixed {
			if !rules.Same(m[name], old[name]) {
				c.Invalid(at.Field(name), m[name], "field is immutable")
			}
		}
		for _, name := range r.Once {
			if before, had := old[name]; had && !rules.Empty(before) && !rules.Same(m[name], before) {
				c.Invalid(at.Field(name), m[name], "field is immutable once set")
			}
		}
	}
	for _, compare := range r.CheckFuncs {
		compare(&c.Check, m, old, at)
	}
}

// field validates the value of one field, and each item of a list.
func (c *check) field(r *kinds.Field, value any, at *field.Path) {
	if r.Forbidden != "" && !rules.Empty(value) {
		c.Forbidden(at, r.Forbidden)
		return
	}
	switch v := value.(type) {
	case []any:
		c.listField(r, v, at)
	case map[string]any:
		if r.NotEmpty && len(v) == 0 {
			c.Required(at, "")
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
				c.scalar(r, item, where)
			}
		}
	default:
		if value == "" && r.NotEmpty {
			c.Required(at, "")
		} else if value != "" { // absent required values are reported elsewhere
			c.scalar(r, value, at)
		}
	}
}

func (c *check) listField(r *kinds.Field, items []any, at *field.Path) {
	if r.NotEmpty && len(items) == 0 {
		c.Required(at, "")
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
			c.scalar(r, item, r.ItemPlace(at, i))
		}
	}
	if len(r.Unique) > 0 {
		c.unique(r.Unique, items, at)
	}
}

// unique checks that no two items of a list have the same key.
func (c *check) unique(by []string, items []any, at *field.Path) {
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

// scalar validates one value that is neither an object nor a list.
func (c *check) scalar(r *kinds.Field, value any, at *field.Path) {
	if i, ok := rules.Whole(value); ok {
		c.number(r, value, i, at)
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

// number validates the bounds of a number.
func (c *check) number(r *kinds.Field, value any, i int64, at *field.Path) {
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

// status returns the 422 with all causes in a stable order; nil if there are none.
func (c *check) status(t *catalogue.Type, object map[string]any) error {
	causes := c.Causes()
	if len(causes) == 0 {
		return nil
	}
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		name, _ = metadata["generateName"].(string)
	}
	group := t.Group
	if t.Stored != nil {
		group = t.Stored.Group // groups that share objects have the same errors
	}
	return services.Invalid(group, t.Kind, name, causes)
}
