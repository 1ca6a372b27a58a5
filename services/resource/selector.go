package resource

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// DefinitionUID is the field label for the UID of the CustomResourceDefinition of
// custom objects. It may be in the field selector of a request for a custom type, as in
// definition.uid=1234: a request that selects the objects of another definition is
// refused, and so is one for a built-in type, which has no such field.
const DefinitionUID = "definition.uid"

// Selector selects objects by their labels and selectable fields.
type Selector struct {
	labels labels.Selector
	fields fields.Selector
}

// ParseSelector parses the labelSelector and fieldSelector of a request. The error
// names the invalid one. The caller checks whether the type supports the fields.
func ParseSelector(labelSelector, fieldSelector string) (Selector, error) {
	var s Selector
	if labelSelector != "" {
		parsed, err := labels.Parse(labelSelector)
		if err != nil {
			return s, err
		}
		if !parsed.Empty() {
			s.labels = parsed
		}
	}
	if fieldSelector != "" {
		parsed, err := fields.ParseSelector(fieldSelector)
		if err != nil {
			return s, err
		}
		if !parsed.Empty() {
			s.fields = parsed
		}
	}
	return s, nil
}

// Empty reports whether every object is selected.
func (s Selector) Empty() bool { return s.labels == nil && s.fields == nil }

// Matches reports whether an object with this key, labels and selectable fields is
// selected. The fields metadata.name and metadata.namespace come from the key.
func (s Selector) Matches(key Key, objectLabels, objectFields map[string]string) bool {
	if s.labels != nil && !s.labels.Matches(labels.Set(objectLabels)) {
		return false
	}
	return s.fields == nil || s.fields.Matches(fieldSet{key, objectFields})
}

// Field returns the value that the selector requires of a field, if it requires one.
func (s Selector) Field(name string) (value string, ok bool) {
	if s.fields == nil {
		return "", false
	}
	return s.fields.RequiresExactMatch(name)
}

// FieldNames returns the fields that the selector uses.
func (s Selector) FieldNames() []string {
	if s.fields == nil {
		return nil
	}
	var names []string
	for _, r := range s.fields.Requirements() {
		names = append(names, r.Field)
	}
	return names
}

// fieldSet adds the fields that every object has to those of its type.
type fieldSet struct {
	key   Key
	extra map[string]string
}

func (f fieldSet) Has(field string) bool {
	_, ok := f.extra[field]
	return ok || field == "metadata.name" || field == "metadata.namespace"
}

func (f fieldSet) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.key.Name
	case "metadata.namespace":
		return f.key.Namespace
	}
	return f.extra[field]
}

var _ fields.Fields = fieldSet{}
