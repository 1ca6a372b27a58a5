package kinds

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Surplus returns the fields of a union of several sorts that are given after the first
// one. They are refused as such, whatever is in them.
func (r *Rules) Surplus(m map[string]any) (names []string) {
	if r == nil || r.Sort == "" {
		return nil
	}
	first := true
	for _, name := range r.OneOf {
		if rules.Empty(m[name]) {
			continue
		}
		if !first {
			names = append(names, name)
		}
		first = false
	}
	return names
}

// CheckUnions checks fields that exclude each other.
func (r *Rules) CheckUnions(c *rules.Check, m map[string]any, at *field.Path) {
	r.checkOneOf(c, m, at)
	if r.Choice != nil {
		r.Choice.check(c, m, at)
	}
}

func (r *Rules) checkOneOf(c *rules.Check, m map[string]any, at *field.Path) {
	for _, group := range []struct {
		fields   []string
		required bool
	}{{r.OneOf, true}, {r.AtMostOne, false}} {
		first := ""
		for _, name := range group.fields {
			if rules.Empty(m[name]) {
				continue
			}
			switch {
			case first == "":
				first = name
			case r.Sort != "":
				c.Forbidden(at.Field(name), "may not specify more than 1 "+r.Sort)
			default:
				c.Forbidden(at.Field(name), "may not be specified together with "+first)
			}
		}
		switch {
		case first != "" || !group.required || len(group.fields) == 0:
		case r.Sort != "":
			c.Required(at, "must specify a "+r.Sort)
		default:
			c.Required(at, "must specify one of: "+strings.Join(group.fields, ", "))
		}
	}
}

// check checks that the field is given that belongs to what is chosen, and no other.
func (r *Choice) check(c *rules.Check, m map[string]any, at *field.Path) {
	chosen, _ := m[r.By].(string)
	mine, known := r.Of[chosen]
	if mine != "" && !r.Optional && m[mine] == nil {
		c.Required(at.Field(mine), "required when "+r.By+" is "+chosen)
	}
	for _, name := range r.Of {
		if name != "" && name != mine && m[name] != nil && known {
			c.Forbidden(at.Field(name), "may not be specified when "+r.By+" is "+chosen)
		}
	}
}
