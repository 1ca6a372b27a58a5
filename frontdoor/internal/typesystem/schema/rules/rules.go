// Package rules is what checks and defaults of single kinds are written with: the
// collector of mistakes, readers of objects, and the checks that all kinds have, of
// metadata and selectors. The functions of single kinds are below package kinds; they
// and these read no other object. It serves "Common object metadata" of the
// specification, and what users of each kind expect.
package rules

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Check collects what is wrong with one object.
type Check struct {
	field.Errors
	Vocabulary vocabulary.Vocabulary
	// Root is the whole object.
	Root map[string]any
	// Subresource is the part that the request writes; "" for the object itself.
	Subresource string
	// Feature reports whether a feature is on; nil stands for the defaults.
	Feature func(string) bool
}

// On reports whether an alpha feature is on.
func (c *Check) On(feature string) bool { return c.Feature != nil && c.Feature(feature) }

// Must notes what is wrong with a text; an empty one is none.
func (c *Check) Must(be format.Format, value string, at *field.Path) {
	if value == "" {
		return
	}
	for _, problem := range be(value) {
		c.Invalid(at, value, problem)
	}
}

// CheckFunc checks what several fields of an object, or the object and its old
// state, have to do with each other. old is nil for a create.
type CheckFunc func(c *Check, m, old map[string]any, at *field.Path)

// DeriveFunc computes defaults of an object from its other fields, in place. It
// runs after the constant defaults.
type DeriveFunc func(m map[string]any, v vocabulary.Vocabulary)

// OperatorValues checks the values of a requirement: In and NotIn need values, Exists
// and DoesNotExist have none, Gt and Lt one.
func (c *Check) OperatorValues(m map[string]any, at *field.Path) {
	n := len(List(m, "values"))
	switch operator := Text(m, "operator"); {
	case (operator == "In" || operator == "NotIn") && n == 0:
		c.Required(at.Field("values"), "must be specified when `operator` is 'In' or 'NotIn'")
	case (operator == "Exists" || operator == "DoesNotExist") && n > 0:
		c.Forbidden(at.Field("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
	case (operator == "Gt" || operator == "Lt") && n != 1:
		c.Required(at.Field("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")
	}
}
