package catalogue

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// describeColumns sets the description of each column that shows a single field and has
// none to the description of the field.
func (c *Catalogue) describeColumns(t *Type) {
	t.Columns = slices.Clone(t.Columns)
	for i := range t.Columns {
		column := &t.Columns[i]
		if name, path := column.Computed(); name == "" && column.Description == "" {
			if field := c.field(t.Schema, path); field != nil {
				column.Description = field.Description
			}
		}
	}
}

// field returns the schema of the field at a path; nil when there is none.
func (c *Catalogue) field(s *spec.Schema, path string) *spec.Schema {
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		if s = c.Resolve(s); s == nil {
			return nil
		}
		switch property, ok := s.Properties[name]; {
		case ok:
			s = &property
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties.Schema
		default:
			return nil
		}
	}
	return s
}
