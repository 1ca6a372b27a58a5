package resource

import (
	"github.com/portico-platform/portico/services/ledger"
)

// DefinitionUID is the field label for the UID of the CustomResourceDefinition of
// custom objects. It may be in the field selector of a request for a custom type, as in
// definition.uid=1234: a request that selects the objects of another definition is
// refused, and so is one for a built-in type, which has no such field.
const DefinitionUID = "definition.uid"

// Selector selects objects by their labels and selectable fields.
type Selector struct {
	labels *requirements
	fields *requirements
	text   string
}

// ParseSelector parses the labelSelector and fieldSelector of a request. The error
// names the invalid one. The caller checks whether the type supports the fields.
func ParseSelector(labelSelector, fieldSelector string) (Selector, error) {
	s := Selector{text: labelSelector + "\x00" + fieldSelector}
	if labelSelector != "" {
		parsed, err := ledger.ParseLabels(labelSelector)
		if err != nil {
			return s, err
		}
		s.labels = compileLabels(parsed)
	}
	if fieldSelector != "" {
		parsed, err := ledger.ParseFields(fieldSelector)
		if err != nil {
			return s, err
		}
		s.fields = compileFields(parsed)
	}
	return s, nil
}

// Empty reports whether every object is selected.
func (s Selector) Empty() bool { return s.labels == nil && s.fields == nil }

// Text identifies the selector: two with the same text select the same objects.
func (s Selector) Text() string { return s.text }

// Matches reports whether an object with this key, labels and selectable fields is
// selected. The fields metadata.name and metadata.namespace come from the key. The time
// that it takes is bounded by the object, however many requirements the selector has.
func (s Selector) Matches(key Key, objectLabels, objectFields map[string]string) bool {
	if s.labels != nil && !s.labels.matchLabels(objectLabels) {
		return false
	}
	return s.fields == nil || s.fields.matchFields(fieldSet{key, objectFields})
}

// Field returns the value that the selector requires of a field, if it requires one.
func (s Selector) Field(name string) (value string, ok bool) {
	if s.fields == nil {
		return "", false
	}
	if r := s.fields.find(name); r != nil && len(r.in) > 0 {
		return r.in[0], true
	}
	return "", false
}

// FieldNames returns the fields that the selector uses, each once.
func (s Selector) FieldNames() []string {
	if s.fields == nil {
		return nil
	}
	names := make([]string, len(s.fields.all))
	for i := range s.fields.all {
		names[i] = s.fields.all[i].name
	}
	return names
}

// Condition is what every selected object fulfils: it has the label Name, with one of
// Values unless that is nil.
type Condition struct {
	Name   string
	Values []string
}

// LabelConditions returns the labels that every selected object has, at most limit
// conditions of at most limit values each. Where a selector allows more values, the
// condition is that the label exists.
func (s Selector) LabelConditions(limit int) (list []Condition) {
	if s.labels == nil {
		return nil
	}
	for i := range s.labels.all {
		if len(list) == limit {
			break
		}
		r := &s.labels.all[i]
		if !r.exists {
			continue
		}
		c := Condition{Name: r.name}
		if r.in != nil && len(r.in) <= limit {
			c.Values = r.in
		}
		list = append(list, c)
	}
	return list
}

// fieldSet adds the fields that every object has to those of its type.
type fieldSet struct {
	key   Key
	extra map[string]string
}

func (f fieldSet) get(field string) string {
	switch field {
	case "metadata.name":
		return f.key.Name
	case "metadata.namespace":
		return f.key.Namespace
	}
	return f.extra[field]
}
