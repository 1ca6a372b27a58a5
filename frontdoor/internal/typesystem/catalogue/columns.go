package catalogue

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// describedColumns returns the columns of a type. The description of a column that has none is that of the
// field that it shows, or that has its name.
func (c *Catalogue) describedColumns(t *Type) []kinds.Column {
	columns := slices.Clone(t.Columns)
	for i := range columns {
		if column := &columns[i]; column.Description == "" {
			column.Description = c.describe(t, column)
		}
	}
	return columns
}

// describe returns the description of the field that a column shows; "" if it shows none.
func (c *Catalogue) describe(t *Type, column *kinds.Column) string {
	name, path := column.Computed()
	switch {
	case path != "":
	case name == kinds.CellAge:
		path = ".metadata.creationTimestamp"
	default:
		return c.describeNamed(t, column.Name)
	}
	if field := c.field(t.Schema(), path); field != nil {
		return field.Description
	}
	return ""
}

// describeNamed returns the description of the field of an object, its spec or its status that has the
// name of a column: Last Schedule is lastScheduleTime.
func (c *Catalogue) describeNamed(t *Type, column string) string {
	expected := strings.ToLower(strings.NewReplacer(" ", "", "-", "", "(", "", ")", "").Replace(column))
	for _, part := range []string{"", "spec", "status"} {
		s := c.Resolve(t.Schema())
		if part != "" {
			s = c.Resolve(c.field(t.Schema(), part))
		}
		if s == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if lower := strings.ToLower(name); lower == expected || lower == expected+"time" {
				return s.Properties[name].Description
			}
		}
	}
	return ""
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
