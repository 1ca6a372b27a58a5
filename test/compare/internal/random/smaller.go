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
	if json.Unmarshal([]byte(text), &body) != nil || len(text) > 1<<12 {
		return all
	}
	for _, smaller := range without(body) {
		variant(func(v *corpus.Step) { v.Body = encoded(smaller) })
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
