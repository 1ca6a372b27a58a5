package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestNullsOfCombinators: a null that a schema allows is not validated against its allOf, anyOf, oneOf
// and not, at any place; its enumeration and a null that is not allowed are.
func TestNullsOfCombinators(t *testing.T) {
	const object = `type: object, properties: {a: {type: string}, b: {type: string}}`
	for _, c := range []struct{ schema, want string }{
		{`{x-int-or-string: true, nullable: true, anyOf: [{type: integer}, {type: string}]}`, ""},
		{`{x-int-or-string: true, nullable: true, allOf: [{anyOf: [{type: integer}, {type: string}]}], pattern: "^a"}`, ""},
		{`{nullable: true, ` + object + `, oneOf: [{required: [a]}, {required: [b]}]}`, ""},
		{`{nullable: true, ` + object + `, oneOf: [{properties: {a: {minLength: 1}}}, {properties: {b: {minLength: 1}}}]}`, ""},
		{`{nullable: true, ` + object + `, not: {required: [zz]}}`, ""},
		{`{nullable: true, ` + object + `, allOf: [{required: [a]}, {not: {required: [b]}}]}`, ""},
		{`{nullable: true, type: string, not: {pattern: "^a"}}`, ""},
		{`{nullable: true, type: string, oneOf: [{pattern: "^a"}, {pattern: "^b"}]}`, ""},
		{`{nullable: true, type: string, enum: [a]}`, "Unsupported value"},
	} {
		eachVocabulary(t, func(t *testing.T, w world) {
			w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {v: `+c.schema+
				`, l: {type: array, items: `+c.schema+`}, m: {type: object, additionalProperties: `+c.schema+`}}}}}`))
			for _, value := range []string{"{v: null}", "{l: [null]}", "{m: {k: null}}"} {
				stored, err := w.write(t, "spec: "+value)
				if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && err != nil {
					t.Errorf("%s: %s: got %v, want %q", c.schema, value, err, c.want)
				}
				if got, want := fmt.Sprint(stored["spec"]), fmt.Sprint(decode(t, value)); got != want {
					t.Errorf("%s: stored %s, want %s", c.schema, got, want)
				}
			}
		})
	}
}

// TestKeptInLists: the items of a list that keeps unknown fields keep theirs, in lists of lists too;
// fields and maps do not inherit it.
func TestKeptInLists(t *testing.T) {
	for _, c := range []struct{ schema, given, want string }{
		{`{type: array, x-preserve-unknown-fields: true, items: {type: object, properties: {known: {type: object, properties: {b: {type: string}}}}}}`,
			`[{known: {b: x, c: 1}, un: 2, deep: {q: [1, {z: 1}]}}]`, `[{known: {b: x}, un: 2, deep: {q: [1, {z: 1}]}}]`},
		{`{type: array, x-preserve-unknown-fields: true, items: {type: array, items: {type: object, properties: {b: {type: string}}}}}`,
			`[[{b: x, c: 1}]]`, `[[{b: x, c: 1}]]`},
		{`{type: array, x-preserve-unknown-fields: true, items: {type: object, x-embedded-resource: true, properties: {spec: {type: object, properties: {b: {type: string}}}}}}`,
			`[{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {c: 1}, more: {d: 1}}]`, `[{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}, more: {d: 1}}]`},
		{`{type: array, x-preserve-unknown-fields: true, items: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}}`,
			`[{k: {b: x, c: 1}}]`, `[{k: {b: x}}]`},
		{`{type: array, items: {type: object, properties: {b: {type: string}}}}`, `[{b: x, c: 1}]`, `[{b: x}]`},
		{`{type: array, x-preserve-unknown-fields: true, items: {type: object, properties: {b: {type: string}}, anyOf: [{required: [x-y]}, {required: [c]}]}}`,
			`[{c: s}]`, `[{c: s}]`},
	} {
		eachVocabulary(t, func(t *testing.T, w world) {
			w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {arr: `+c.schema+`}}}}`))
			object, err := w.write(t, "spec: {arr: "+c.given+"}")
			if err != nil {
				t.Fatal(c.schema, err)
			}
			got, _ := tree.Child(object, "spec")["arr"].([]any)
			if want := decode(t, "a: "+c.want)["a"]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, want %v", c.schema, got, want)
			}
		})
	}
}

// TestNullsOfMaps: nulls of a map whose values may not be null become the default, or are dropped also
// if the values have no type.
func TestNullsOfMaps(t *testing.T) {
	for _, c := range []struct{ schema, given, want string }{
		{`{type: object, additionalProperties: {x-preserve-unknown-fields: true}}`, `{a: null, b: {c: null}}`, `{b: {c: null}}`},
		{`{type: object, additionalProperties: {x-preserve-unknown-fields: true, nullable: true}}`, `{a: null}`, `{a: null}`},
		{`{type: object, additionalProperties: true}`, `{a: null}`, `{a: null}`},
		{`{type: object, additionalProperties: {x-int-or-string: true}}`, `{a: null, b: 1}`, `{b: 1}`},
		{`{type: object, additionalProperties: {type: string, default: x}}`, `{a: null}`, `{a: x}`},
		{`{type: object, additionalProperties: {type: object, default: {c: e}, properties: {b: {type: string, default: x}, c: {type: string}}}}`,
			`{a: null, d: {}}`, `{a: {b: x, c: e}, d: {b: x}}`},
	} {
		eachVocabulary(t, func(t *testing.T, w world) {
			w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {m: `+c.schema+`}}}}`))
			object, err := w.write(t, "spec: {m: "+c.given+"}")
			if err != nil {
				t.Fatal(c.schema, err)
			}
			got := tree.Child(object, "spec")["m"]
			if want := decode(t, "a: "+c.want)["a"]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, want %v", c.schema, got, want)
			}
		})
	}
}

// TestLargeIntegers: bounds and factors of integers are exact beyond the integers of a float64.
func TestLargeIntegers(t *testing.T) {
	for _, c := range []struct{ schema, given, want string }{
		{`type: integer, multipleOf: 2`, `9007199254740993`, "should be a multiple of 2"},
		{`type: integer, multipleOf: 2`, `9223372036854775806`, ""},
		{`type: integer, multipleOf: 10`, `9223372036854775801`, "should be a multiple of 10"},
		{`type: number, multipleOf: 3`, `-9007199254740993`, ""},
		{`type: number, multipleOf: 0.1`, `3`, ""},
		{`type: integer, maximum: 9007199254740992`, `9007199254740993`, "less than or equal to"},
		{`type: integer, minimum: -9007199254740992`, `-9007199254740993`, "greater than or equal to"},
		{`type: integer, maximum: 9007199254740994, exclusiveMaximum: true`, `9007199254740993`, ""},
		{`type: number, minimum: 1.5`, `1`, "greater than or equal to"},
	} {
		w := newWorld(t, vocabulary.K8s())
		w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {n: {`+c.schema+`}}}}}`))
		_, err := w.write(t, "spec: {n: "+c.given+"}")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s of %s: got %v, want %q", c.given, c.schema, err, c.want)
		}
	}
}
