package crd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

// TestCauses: the causes of values that do not match are those of kube-apiserver: of several schemas, those
// of the one that matches most, and formats that come before the type.
func TestCauses(t *testing.T) {
	const object = `type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}`
	type causes []string
	for _, c := range []struct {
		schema, value string
		want          causes // field: message
	}{
		{`{type: object, properties: {x: {type: object, properties: {y: {type: string}, z: {type: integer}}}},
			anyOf: [{properties: {x: {properties: {y: {pattern: "^a"}}}}}, {properties: {x: {properties: {z: {maximum: 5}}, required: [z]}}}]}`, `{x: {y: b, z: 7}}`,
			causes{`<nil>: Invalid value: "": "spec.v" must validate at least one schema (anyOf)`, `spec.v.x.z: Invalid value: 7: spec.v.x.z in body should be less than or equal to 5`}},
		{`{type: array, items: {type: object, properties: {k: {type: string}, v: {type: integer}}, oneOf: [{properties: {k: {enum: [a]}}}, {properties: {v: {minimum: 10}}}]}}`, `[{k: b, v: 1}]`,
			causes{`<nil>: Invalid value: "": "spec.v[0]" must validate one and only one schema (oneOf). Found none valid`, `spec.v[0].v: Invalid value: 1: spec.v[0].v in body should be greater than or equal to 10`}},
		{`{` + object + `, oneOf: [{required: [a, c]}, {required: [b, c]}, {properties: {a: {minLength: 3}}, required: [a]}]}`, `{a: x}`,
			causes{`<nil>: Invalid value: "": "spec.v" must validate one and only one schema (oneOf). Found none valid`, `spec.v.a: Invalid value: "x": spec.v.a in body should be at least 3 chars long`}},
		{`{` + object + `, allOf: [{anyOf: [{required: [a]}, {not: {required: [b]}}]}, {oneOf: [{required: [c]}, {allOf: [{required: [a]}, {required: [b]}]}]}]}`, `{}`,
			causes{`<nil>: Invalid value: "": "spec.v" must validate one and only one schema (oneOf). Found none valid`, `spec.v.a: Required value`, `spec.v.b: Required value`,
				`<nil>: Invalid value: "": "spec.v" must validate all the schemas (allOf). None validated`, `<nil>: Invalid value: "": "spec.v" must validate all the schemas (allOf)`}},
		{`{type: string, anyOf: [{format: ipv4}, {format: ipv6}]}`, `5`, causes{`spec.v: Invalid value: "integer": spec.v in body must be of type string: "integer"`,
			`<nil>: Invalid value: "": "spec.v" must validate at least one schema (anyOf)`, `spec.v: Invalid value: "int64": spec.v in body must be of type ipv4: "int64"`}},
		{`{x-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {format: ipv4}]}`, `5`,
			causes{`<nil>: Invalid value: "": "spec.v" must validate all the schemas (allOf)`, `spec.v: Invalid value: "int64": spec.v in body must be of type ipv4: "int64"`}},
		{`{x-int-or-string: true, format: ipv4}`, `true`, causes{`spec.v: Invalid value: "": spec.v in body must be of type ipv4: ""`}},
		{`{type: string, format: date-time}`, `[]`, nil},
		{`{type: string, format: date-time}`, `{}`, causes{`spec.v: Invalid value: "": spec.v in body must be of type date-time: ""`}},
		{`{type: integer, format: int64}`, `true`, causes{`spec.v: Invalid value: "": spec.v in body must be of type int64: ""`}},
		{`{type: integer, format: int64}`, `x`, causes{`spec.v: Invalid value: "string": spec.v in body must be of type integer: "string"`}},
		{`{type: integer, format: int32}`, `3000000000`, causes{`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.v`}},
		{`{type: integer}`, `1.5`, causes{`spec.v: Invalid value: "number": spec.v in body must be of type integer: "number"`, `<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.v`}},
		{`{type: integer, maximum: 5, minimum: 1.5}`, `7`, causes{`spec.v: Invalid value: 7: spec.v in body should be less than or equal to 5`,
			`<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in spec.v`}},
		{`{type: number, format: float}`, `1e300`, causes{`<nil>: Invalid value: "": Checked value must be of type number with format float in spec.v`}},
		{`{type: number, multipleOf: 2}`, `1e300`, causes{`spec.v: Invalid value: 1e+300: spec.v in body should be a multiple of 2`}},
		{`{type: number, multipleOf: 0.1}`, `0.3`, nil},
		{`{type: array, x-list-type: map, x-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}`, `[x]`,
			causes{`spec.v[0]: Invalid value: "string": spec.v[0] in body must be of type object: "string"`, `spec.v[0]: Invalid value: "x": must be an object for an array of list-type map`}},
		{`{type: string, maxLength: 1}`, `abc`, causes{`spec.v: Too long: may not be more than 1 byte`}},
	} {
		eachVocabulary(t, func(t *testing.T, w world) {
			w = later(t, w.vocabulary)
			w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {v: `+c.schema+`}}}}`))
			_, err := w.write(t, "spec: {v: "+c.value+"}")
			var got []string
			if s := services.AsStatus(err); err != nil && s.Details != nil {
				for _, cause := range s.Details.Causes {
					got = append(got, cause.Field+": "+cause.Message)
				}
			}
			want := slices.Clone(c.want)
			slices.Sort(got)
			slices.Sort(want)
			if (err == nil) != (len(want) == 0) || !slices.Equal(got, want) {
				t.Errorf("%s: %s: %v\n%s\nwant\n%s", c.schema, c.value, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestLaxDefaults: Kubernetes validates neither defaults of the values of maps, nor duplicates in defaults, nor the
// type of the default of an int-or-string.
func TestLaxDefaults(t *testing.T) {
	for schema, want := range map[string]bool{
		`{type: object, additionalProperties: {type: string, default: 1}}`:                                  true,
		`{type: object, additionalProperties: {type: object, properties: {z: {type: string, default: 5}}}}`: true,
		`{type: array, items: {type: string}, x-list-type: set, default: [z, z]}`:                           true,
		`{x-int-or-string: true, default: []}`:                                                              true,
		`{type: array, items: {x-int-or-string: true}, default: [{}]}`:                                      true,
		`{type: object, properties: {additionalProperties: {type: string, default: 1}}}`:                    false,
		`{type: array, items: {type: string}, x-list-type: set, default: [1]}`:                              false,
		`{x-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: []}`:                    false,
	} {
		eachVocabulary(t, func(t *testing.T, w world) {
			definition := w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {v: `+schema+`}}}}`)
			w.prepare(t, definition)
			if err := w.rules().Check(definition, nil); (err == nil) != want {
				t.Errorf("%s: %v", schema, err)
			}
		})
	}
}
