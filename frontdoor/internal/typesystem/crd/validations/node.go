package validations

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// node is what the rules of a schema depend on in the schemas around it.
type node struct {
	// structural and declared are the schema and its type in expressions; nil where rules
	// are not compiled, which is below combinators.
	structural *schema.Structural
	declared   *apiservercel.DeclType
	// cardinality is the largest number of values of the schema in an object; nil if it is
	// not limited.
	cardinality *uint64
	// uncorrelated is the path of the schema above whose values cannot be identified in the
	// stored object; nil if all can.
	uncorrelated *field.Path
}

// times returns the cost of a rule for all values: unlimited is their number if the schema
// does not limit it.
func (n node) times(cost, unlimited uint64) uint64 {
	if n.cardinality != nil {
		return multiply(cost, *n.cardinality)
	}
	return multiply(cost, unlimited)
}

// children calls visit for the schemas below a schema.
func (c *checker) children(s *apiextensions.JSONSchemaProps, at *field.Path, n node, visit func(*apiextensions.JSONSchemaProps, *field.Path, node)) {
	if values := s.AdditionalProperties; values != nil && values.Schema != nil {
		visit(values.Schema, at.Child("additionalProperties"), n.values(s))
	}
	for name := range s.Properties {
		property := s.Properties[name]
		visit(&property, at.Child("properties").Key(name), n.property(s, name, at))
	}
	if s.Items != nil && s.Items.Schema != nil {
		visit(s.Items.Schema, at.Child("items"), n.items(s, at))
	}
	if s.Not != nil {
		visit(s.Not, at.Child("not"), node{})
	}
	for _, combined := range []struct {
		keyword string
		parts   []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}} {
		for i := range combined.parts {
			visit(&combined.parts[i], at.Child(combined.keyword).Index(i), node{})
		}
	}
}

// property returns the node of a property.
func (n node) property(s *apiextensions.JSONSchemaProps, name string, at *field.Path) node {
	next := node{cardinality: n.within(s), uncorrelated: n.uncorrelated}
	if next.uncorrelated == nil && !schemacel.MapIsCorrelatable(s.XMapType) {
		next.uncorrelated = at
	}
	if n.structural == nil {
		return next
	}
	if property, ok := n.structural.Properties[name]; ok {
		next.structural = &property
		next.declared = n.fieldType(name)
		if next.declared == nil {
			next.declared = model.SchemaDeclType(&property, property.XEmbeddedResource)
		}
	}
	return next
}

// fieldType returns the type of a field; nil if expressions cannot name it.
func (n node) fieldType(name string) *apiservercel.DeclType {
	escaped, ok := apiservercel.Escape(name)
	if !ok || n.declared == nil {
		return nil
	}
	if f, ok := n.declared.Fields[escaped]; ok {
		return f.Type
	}
	return nil
}

// items returns the node of the items of a list.
func (n node) items(s *apiextensions.JSONSchemaProps, at *field.Path) node {
	next := node{cardinality: n.within(s), uncorrelated: n.uncorrelated}
	if next.uncorrelated == nil && (s.XListType == nil || *s.XListType != "map") {
		next.uncorrelated = at
	}
	if n.structural != nil && n.structural.Items != nil {
		next.structural = n.structural.Items
		next.declared = n.element(next.structural)
	}
	return next
}

// values returns the node of the values of a map.
func (n node) values(s *apiextensions.JSONSchemaProps) node {
	next := node{cardinality: n.within(s), uncorrelated: n.uncorrelated}
	if n.structural != nil && n.structural.AdditionalProperties != nil && n.structural.AdditionalProperties.Structural != nil {
		next.structural = n.structural.AdditionalProperties.Structural
		next.declared = n.element(next.structural)
	}
	return next
}

// element returns the type of the items of a list or the values of a map, whose schema is
// given for the case that the list or map has no type.
func (n node) element(s *schema.Structural) *apiservercel.DeclType {
	if n.declared != nil {
		return n.declared.ElemType
	}
	return model.SchemaDeclType(s, s.XEmbeddedResource)
}

// within returns the cardinality of the schemas below a schema.
func (n node) within(s *apiextensions.JSONSchemaProps) *uint64 {
	if n.cardinality == nil {
		return nil
	}
	most := int64(1)
	switch {
	case s.Type == "object" && s.AdditionalProperties != nil:
		if s.MaxProperties == nil {
			return nil
		}
		most = *s.MaxProperties
	case s.Type == "array":
		if s.MaxItems == nil {
			return nil
		}
		most = *s.MaxItems
	}
	number := multiply(*n.cardinality, uint64(max(most, 0)))
	return &number
}

// validPath reports whether a path names a field of a schema.
func validPath(s *apiextensions.JSONSchemaProps, path string) bool {
	structural, err := schema.NewStructural(s)
	if err != nil {
		return true // reported elsewhere
	}
	_, _, err = schemacel.ValidFieldPath(path, structural)
	return err == nil
}
