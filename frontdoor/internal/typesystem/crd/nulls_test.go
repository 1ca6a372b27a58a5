package crd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/services"
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

// TestAppliedNulls: a null that is not valid is an error in an apply, unless there is a default, and
// absent in other writes.
func TestAppliedNulls(t *testing.T) {
	for _, c := range []struct{ schema, given, wrong string }{
		{`{type: object, properties: {a: {type: string}}}`, "null", "spec.v: Invalid value: \"null\": spec.v in body must be of type object"},
		{`{type: string}`, "null", "must be of type string"},
		{`{type: array, items: {type: string}}`, "null", "must be of type array"},
		{`{type: object, additionalProperties: {type: string}}`, "{k: null}", "spec.v.k in body must be of type string"},
		{`{type: object, properties: {a: {type: integer}}}`, "{a: null}", "spec.v.a in body must be of type integer"},
		{`{type: string, nullable: true}`, "null", ""},
		{`{type: string, default: x}`, "null", ""},
		{`{x-preserve-unknown-fields: true}`, "null", ""},
	} {
		for _, applied := range []bool{true, false} {
			w := newWorld(t, vocabulary.K8s())
			w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {v: `+c.schema+`}}}}`))
			object := decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}, spec: {v: "+c.given+"}}")
			change := schema.Change{Type: w.lookup(t), Object: object, Applied: applied, Warn: func(...string) {}}
			if _, err := w.schemas.PrepareChange(t.Context(), change, schema.Ignore); err != nil {
				t.Fatal(err)
			}
			err := w.schemas.ValidateChange(t.Context(), change)
			if refused := applied && c.wrong != ""; refused != (err != nil) || refused && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: applied %v: got %v, want %q", c.schema, applied, err, c.wrong)
			}
		}
	}
}

// TestPathsOfStatus: a write of the status validates it alone: messages have paths below it, and errors
// of combinators its path. The rest of the object is not looked at.
func TestPathsOfStatus(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {n: {type: integer, maximum: 5}}}, status: {type: object, required: [c], properties: {c: {type: string},
		addresses: {type: array, items: {type: object, properties: {value: {type: string}}, oneOf: [{properties: {value: {format: ipv4}}}, {properties: {value: {pattern: "^x"}}}]}}}}}}`,
		"subresources: {status: {}}"))
	object := decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default, resourceVersion: '1'}, spec: {n: 9}, status: {addresses: [{value: b}]}}")
	change := schema.Change{Type: w.lookup(t), Subresource: "status", Object: object, Old: decode(t, "{metadata: {name: a, namespace: default}, spec: {n: 9}}"), Warn: func(...string) {}}
	s := services.AsStatus(w.schemas.ValidateChange(t.Context(), change))
	if s == nil || s.Details == nil {
		t.Fatal(s)
	}
	var got []string
	for _, cause := range s.Details.Causes {
		got = append(got, cause.Field+": "+cause.Message)
	}
	want := []string{
		`status: Invalid value: "": "addresses[0]" must validate one and only one schema (oneOf). Found none valid`,
		`status.addresses[0].value: Invalid value: "b": addresses[0].value in body must be of type ipv4: "b"`,
		`status.c: Required value`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
