package catalogue

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// describedColumns returns the columns of a type. The description of a column that shows a
// single field and has none is that of the field.
func (c *Catalogue) describedColumns(t *Type) []kinds.Column {
	columns := slices.Clone(t.Columns)
	for i := range columns {
		column := &columns[i]
		if name, path := column.Computed(); name == "" && column.Description == "" {
			if field := c.field(t.Schema(), path); field != nil {
				column.Description = field.Description
			}
		}
	}
	return columns
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
