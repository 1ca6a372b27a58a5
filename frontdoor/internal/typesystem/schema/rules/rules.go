// Package rules has what the checks and defaults of kinds share: the collector of errors,
// readers of objects, and the rules for metadata and selectors. The functions of single
// kinds are below package kinds. None of them reads another object. It serves "Common
// object metadata" of the specification, and what users of each kind expect.
package rules

import (
	"cmp"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Check collects the errors of one object.
type Check struct {
	field.Errors
	Vocabulary vocabulary.Vocabulary
	// Release is the release whose rules apply.
	Release release.Release
	// Root is the whole object.
	Root map[string]any
	// Subresource is the part that the request writes; "" for the object itself.
	Subresource string
	// Feature reports whether a feature is on; nil means the defaults.
	Feature func(string) bool

	warnings []string
}

// Warn adds a warning, which the client gets if the object is valid.
func (c *Check) Warn(text string) { c.warnings = append(c.warnings, text) }

// Warned returns the warnings, sorted and without duplicates.
func (c *Check) Warned() []string {
	slices.Sort(c.warnings)
	return slices.Compact(c.warnings)
}

// Status returns the Status (422) of an object of this group and kind, with all causes in a
// stable order; nil if there are none.
func (c *Check) Status(group, kind string) error {
	causes := c.Causes()
	if len(causes) == 0 {
		return nil
	}
	metadata := Object(c.Root, "metadata")
	return services.Invalid(group, kind, cmp.Or(Text(metadata, "name"), Text(metadata, "generateName")), causes)
}

// On reports whether an alpha feature is on.
func (c *Check) On(feature string) bool { return c.Feature != nil && c.Feature(feature) }

// Must adds the errors of a string that does not have the format. "" counts as absent.
func (c *Check) Must(be format.Format, value string, at *field.Path) {
	if value == "" {
		return
	}
	for _, problem := range be(value) {
		c.Invalid(at, value, problem)
	}
}

// Unique adds the errors of texts that a list has more than once.
func (c *Check) Unique(texts []string, at *field.Path) {
	seen := make(map[string]bool, len(texts))
	for i, text := range texts {
		if seen[text] {
			c.Duplicate(at.Item(i), text)
		}
		seen[text] = true
	}
}

// CheckFunc validates several fields of an object together, or compares the object with the
// stored one. old is nil for a create.
type CheckFunc func(c *Check, m, old map[string]any, at *field.Path)

// DeriveFunc computes defaults from other fields, in place, after the constant defaults
// have been applied.
type DeriveFunc func(m map[string]any, v vocabulary.Vocabulary)

// OperatorValues validates the values of a selector requirement: In and NotIn need values,
// Exists and DoesNotExist have none, Gt and Lt one.
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
