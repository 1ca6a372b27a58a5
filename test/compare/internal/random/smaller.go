package random

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
)

// Smaller returns steps that are like this one without one of its parts: a header, a parameter
// or a field of its body.
func Smaller(step corpus.Step) (all []corpus.Step) {
	variant := func(change func(*corpus.Step)) {
		v := step
		change(&v)
		all = append(all, v)
	}
	if step.Accept != "" {
		variant(func(v *corpus.Step) { v.Accept = "" })
	}
	if parameters := strings.Split(step.Query, "&"); step.Query != "" {
		for i := range parameters {
			variant(func(v *corpus.Step) {
				v.Query = strings.Join(slices.Delete(slices.Clone(parameters), i, i+1), "&")
			})
		}
	}
	text, _ := step.Body.(string)
	var body any
	if json.Unmarshal([]byte(text), &body) != nil || len(text) > 1<<14 {
		return all
	}
	if step.Path == DefinitionsPath {
		return append(all, smallerSchemas(step, text)...)
	}
	for _, smaller := range without(body) {
		variant(func(v *corpus.Step) { v.Body = encoded(smaller) })
	}
	return all
}

// smallerSchemas returns definitions with a part less in the schema.
func smallerSchemas(step corpus.Step, text string) (all []corpus.Step) {
	const before, after = `"schema":{"openAPIV3Schema":`, `},"served":true`
	start, end := strings.Index(text, before)+len(before), strings.LastIndex(text, after)
	var schema any
	if start < len(before) || end < start || json.Unmarshal([]byte(text[start:end]), &schema) != nil {
		return nil
	}
	for _, smaller := range without(schema) {
		v := step
		v.Body = text[:start] + encoded(smaller) + text[end:]
		all = append(all, v)
	}
	return all
}

// without returns the values that are like this one without one of its fields or items.
func without(value any) (all []any) {
	switch v := value.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			less := maps.Clone(v)
			delete(less, name)
			all = append(all, less)
			for _, smaller := range without(v[name]) {
				changed := maps.Clone(v)
				changed[name] = smaller
				all = append(all, changed)
			}
		}
	case []any:
		for i := range v {
			all = append(all, slices.Delete(slices.Clone(v), i, i+1))
			for _, smaller := range without(v[i]) {
				changed := slices.Clone(v)
				changed[i] = smaller
				all = append(all, changed)
			}
		}
	}
	return all
}
