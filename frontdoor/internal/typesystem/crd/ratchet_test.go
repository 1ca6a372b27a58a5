package crd_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
)

const ratchetSchema = `{type: object, properties: {spec: {type: object, required: [need], properties: {need: {type: string}, num: {type: integer, maximum: 5}, free: {type: string},
  tags: {type: array, items: {type: string, maxLength: 2}}, both: {allOf: [{properties: {x: {maximum: 5}}}], type: object, properties: {x: {type: integer}, z: {type: integer}}},
  fixed: {type: object, x-map-type: atomic, properties: {a: {type: integer, maximum: 5}, b: {type: integer}}}, values: {type: object, additionalProperties: {type: integer, maximum: 5}},
  parts: {type: array, x-list-type: map, x-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, size: {type: integer, maximum: 5}}}}}}}}`

// TestRatcheting: an update keeps what the schema no longer accepts, as long as it
// stays as it is stored; release 1.21 refuses it.
func TestRatcheting(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, w world) {
		now, before := later(t, w.vocabulary).ruled(t, ratchetSchema), w.ruled(t, ratchetSchema)
		for name, x := range map[string]struct{ old, object, want string }{
			"a new object":         {"", "{need: a, num: 9}", "spec.num: Invalid value: 9"},
			"one that stays":       {"{need: a, num: 9}", "{need: a, num: 9, free: b}", ""},
			"one that changes":     {"{need: a, num: 9}", "{need: a, num: 8}", "spec.num: Invalid value: 8"},
			"one that is new":      {"{need: a}", "{need: a, num: 8}", "spec.num: Invalid value: 8"},
			"of another type":      {"{need: a, num: x}", "{need: a, num: x, free: b}", ""},
			"what is missing":      {"{free: a}", "{free: a}", ""},
			"and there is more":    {"{free: a}", "{free: b}", "spec.need: Required value"},
			"an item that moved":   {"{need: a, parts: [{name: a, size: 9}, {name: b}]}", "{need: a, parts: [{name: c}, {name: a, size: 9}]}", ""},
			"an item that changed": {"{need: a, parts: [{name: a, size: 9}]}", "{need: a, parts: [{name: a, size: 8}]}", "spec.parts[0].size: Invalid value: 8"},
			"one of two":           {"{need: a, num: 9, parts: [{name: a, size: 9}]}", "{need: a, num: 9, parts: [{name: a, size: 8}]}", "spec.parts[0].size: Invalid value: 8"},
			"a new item":           {"{need: a, parts: [{name: a, size: 9}]}", "{need: a, parts: [{name: b, size: 9}]}", "spec.parts[0].size: Invalid value: 9"},
			"an atomic list":       {"{need: a, tags: [long]}", "{need: a, tags: [long]}", ""},
			"that changes":         {"{need: a, tags: [long]}", "{need: a, tags: [long, b]}", "spec.tags[0]: Too long"},
			"an atomic map":        {"{need: a, fixed: {a: 9, b: 1}}", "{need: a, fixed: {a: 9, b: 2}}", "spec.fixed.a: Invalid value: 9"},
			"a map":                {"{need: a, values: {a: 9, b: 1}}", "{need: a, values: {a: 9, b: 2}}", ""},
			"a part of allOf":      {"{need: a, both: {x: 9, z: 1}}", "{need: a, both: {x: 9, z: 2}}", ""},
		} {
			found := strings.Join(now.change(t, x.old, x.object), "\n")
			if (found == "") != (x.want == "") || !strings.Contains(found, x.want) || strings.Count(found, "\n") > 0 {
				t.Errorf("%s: got %q, want %q", name, found, x.want)
			}
			if found := before.change(t, x.old, x.object); len(found) == 0 {
				t.Errorf("release 1.21 accepts %s", name)
			}
		}
	})
}

// TestRatchetingIsBounded: objects that differ in their deepest value, beside many errors,
// take little time.
func TestRatchetingIsBounded(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, w world) {
		const depth = 60
		text := `{type: object, properties: {spec: ` + strings.Repeat(`{type: object, properties: {l: {type: array, items: {type: string, maxLength: 1}}, d: `, depth) +
			`{type: integer}` + strings.Repeat(`}}`, depth) + `}}`
		w = later(t, w.vocabulary).ruled(t, text)
		object := func(end string) string {
			return strings.Repeat(`{l: [`+strings.Repeat(`xx,`, 300)+`xx], d: `, depth) + end + strings.Repeat(`}`, depth)
		}
		if found := w.change(t, object("1"), object("2")); len(found) > 0 {
			t.Errorf("%.300q", found)
		}
	})
}

// TestEmptyValuesAreNotAbsent: an update that adds an empty or zero value changes the object, so that the value is
// validated. Only what is stored as it is written may stay invalid.
func TestEmptyValuesAreNotAbsent(t *testing.T) {
	w := later(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {
		n: {type: integer, minimum: 3}, t: {type: string, minLength: 1}, b: {type: boolean, not: {enum: [false]}}, l: {type: array, minItems: 1, items: {type: string}},
		o: {type: object, minProperties: 1, properties: {n: {type: integer, minimum: 3}}}}}}}`))
	for _, value := range []string{"{n: 0}", "{t: ''}", "{b: false}", "{l: []}", "{o: {}}", "{o: {n: 0}}"} {
		for _, old := range []string{"{}", "{o: {}}"} {
			if got := w.change(t, old, value); len(got) == 0 && value != old {
				t.Errorf("%s is valid after %s", value, old)
			}
		}
		if got := w.change(t, value, value); len(got) > 0 {
			t.Errorf("%s may not stay: %q", value, got)
		}
	}
}
