package kinds

import (
	"cmp"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Surplus returns the fields of a union that are not looked into: of several sorts, or fields
// of Choice.First, those after the first one, all of Either when it has several, and those
// besides Only. They are refused as such.
func (r *Rules) Surplus(m map[string]any) []string {
	switch {
	case r == nil:
		return nil
	case r.Sort != "":
		if names := given(m, r.OneOf); len(names) > 1 {
			return names[1:]
		}
	case len(r.Either) > 0:
		if names := given(m, r.Either); len(names) > 1 {
			return names
		}
	case r.Only != nil:
		return r.Only.others(m)
	case r.Choice != nil:
		if names := given(m, r.Choice.First); len(names) > 1 {
			return names[1:]
		}
	}
	return nil
}

// given returns those of some fields that an object has.
func given(m map[string]any, names []string) (found []string) {
	for _, name := range names {
		if !rules.Empty(m[name]) {
			found = append(found, name)
		}
	}
	return found
}

// CheckUnions checks fields that exclude each other.
func (r *Rules) CheckUnions(c *rules.Check, m map[string]any, at *field.Path) {
	r.checkOneOf(c, m, at)
	r.checkEither(c, m, at)
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

func (r *Rules) checkEither(c *rules.Check, m map[string]any, at *field.Path) {
	if len(r.Either) == 0 {
		return
	}
	why := cmp.Or(r.EitherSays, "must specify exactly one of "+strings.Join(r.Either, " and "))
	switch n := len(given(m, r.Either)); {
	case n == 0:
		c.Required(at, why)
	case n > 1 && r.EitherSays != "":
		c.Invalid(at, nil, why+", but multiple fields are set")
	case n > 1:
		c.Forbidden(at, why)
	}
}

// check checks that the field is given that belongs to what is chosen, and no other.
func (r *Choice) check(c *rules.Check, m map[string]any, at *field.Path) {
	chosen, _ := m[r.By].(string)
	mine, known := r.Of[chosen]
	if mine != "" && !r.Optional && m[mine] == nil {
		c.Required(at.Field(mine), cmp.Or(r.Missing, "required when "+r.By+" is "+chosen))
	}
	if len(r.First) > 0 {
		if names := given(m, r.First); len(names) > 1 {
			for _, name := range names {
				if name != mine {
					c.Forbidden(at.Field(name), r.Surplus)
				}
			}
		}
		return
	}
	for _, name := range r.Of {
		if name != "" && name != mine && m[name] != nil && known {
			c.Forbidden(at.Field(name), cmp.Or(r.Surplus, "may not be specified when "+r.By+" is "+chosen))
		}
	}
}
