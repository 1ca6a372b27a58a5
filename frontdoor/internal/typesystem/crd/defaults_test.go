package crd_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// refusals returns the causes for which a definition with a field x of this schema is refused.
func (w world) refusals(t *testing.T, schema string) (causes []string) {
	t.Helper()
	rules := w.rules()
	rules.Expressions = cel.New(cel.Config{Release: release.V136})
	definition := w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {x: `+schema+`}}}}`)
	if err := crd.Mistyped(definition, w.vocabulary); err != nil {
		return []string{err.Error()}
	}
	w.claims(now).Establish(definition, nil)
	err := rules.Check(definition, nil)
	if err == nil {
		return nil
	}
	for _, c := range services.AsStatus(err).Details.Causes {
		causes = append(causes, strings.TrimPrefix(c.Field, "spec.validation.openAPIV3Schema.properties[spec].properties[x].")+": "+c.Message)
	}
	return causes
}

// TestDefaultsFulfilRules: a definition whose default violates a rule is refused, as in kube-apiserver, which
// evaluates the rules for a default that stays the same, and then for a new one.
func TestDefaultsFulfilRules(t *testing.T) {
	for _, c := range []struct {
		schema string
		want   []string
	}{
		{`{type: integer, default: 8, x-validations: [{rule: self < 9}]}`, nil},
		{`{type: integer, default: 9, x-validations: [{rule: self < 9}]}`, []string{"default: Invalid value: 9: failed rule: self < 9"}},
		{`{type: object, additionalProperties: {type: integer, x-validations: [{rule: self < 9}]}, default: {a: 9}}`, []string{"default[a]: Invalid value: 9: failed rule: self < 9"}},
		{`{type: object, properties: {a: {type: integer, x-validations: [{rule: self < 9, message: "no"}]}}, default: {a: 9}}`, []string{"default.a: Invalid value: 9: no"}},
		{`{type: array, items: {type: integer, x-validations: [{rule: self < 9, messageExpression: "'bad ' + string(self)", reason: FieldValueForbidden}]}, default: [1, 9]}`,
			[]string{"default[1]: Forbidden: bad 9"}},
		{`{type: object, properties: {a: {type: integer}}, x-validations: [{rule: self.a < 9, fieldPath: .a, reason: FieldValueRequired}, {rule: self.a < oldSelf.a}], default: {a: 9}}`,
			[]string{"default.a: Required value: failed rule: self.a < 9", "default: Invalid value: failed rule: self.a < oldSelf.a"}},
		{`{type: object, properties: {a: {type: integer, default: 10}}, x-validations: [{rule: has(self.a)}], default: {}}`, []string{"default: Invalid value: failed rule: has(self.a)"}},
		{`{type: integer, default: 9, x-validations: [{rule: oldSelf.hasValue(), optionalOldSelf: true}]}`, []string{"default: Invalid value: 9: failed rule: oldSelf.hasValue()"}},
		{`{type: integer, default: 9, x-validations: [{rule: "self < oldSelf.?x.orValue(1)", optionalOldSelf: true}]}`, []string{"default: Invalid value: \"integer\": rule compile error"}},
		{`{type: object, properties: {c: {type: boolean, x-validations: [{rule: self}]}}, default: {b: {}, c: false}}`,
			[]string{"default.c: Invalid value: false: failed rule: self", `default: Invalid value: {"b":{},"c":false}: must not have unknown fields`}},
		{`{type: string, maxLength: 1, default: ab, x-validations: [{rule: self != 'ab'}]}`, []string{"default: Too long: may not be more than 1 byte"}},
	} {
		for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
			got := later(t, v).refusals(t, c.schema)
			if len(got) != len(c.want) || slices.ContainsFunc(c.want, func(want string) bool {
				return !slices.ContainsFunc(got, func(found string) bool { return strings.HasPrefix(found, want) })
			}) {
				t.Errorf("%s %s: got %q, want %q", v.Name, c.schema, got, c.want)
			}
		}
	}
}

// TestErrorsBesideRules: rules are compiled, and defaults looked at, beside errors that leave a schema structural,
// but not around these.
func TestErrorsBesideRules(t *testing.T) {
	const set = `{type: array, x-list-type: set, items: {type: string, nullable: true}}`
	for _, c := range []struct{ schema, want string }{
		{`{type: object, properties: {a: ` + set + `, b: {type: integer, minimum: 3, default: 1}}}`, "properties[b].default: Invalid value: 1: "},
		{`{type: object, properties: {a: ` + set + `, b: {type: integer, x-validations: [{rule: self.a}]}}}`, "properties[b].x-kubernetes-validations[0].rule: Invalid value: "},
		{`{type: object, properties: {a: ` + set + `}, x-validations: [{rule: self.b}]}`, ""},
		{`{type: array, x-list-type: set, items: {type: object, properties: {a: {type: integer}}, x-validations: [{rule: self.b}]}}`, "items.x-kubernetes-validations[0].rule: Invalid value: "},
		{`{type: object, properties: {a: {type: integer, minimum: 3, default: 1}, b: {type: integer, x-validations: [{rule: self.a}]}}}`, ""},
	} {
		got := later(t, vocabulary.K8s()).refusals(t, c.schema)
		if found := slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, c.want) }); len(got) == 0 || !found || c.want == "" && len(got) != 1 {
			t.Errorf("%s: got %q, want one with %q", c.schema, got, c.want)
		}
	}
}

// TestMistypedSchemas: a definition that cannot be decoded is refused with 400, whatever else is wrong with it, and
// wherever the keyword is.
func TestMistypedSchemas(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{type: object, uniqueItems: true, additionalProperties: {type: {}}}`, "properties[x].additionalProperties.type: expected a string, got an object"},
		{`{type: object, additionalProperties: 0}`, "properties[x].additionalProperties: expected a boolean or a schema, got a number"},
		{`{type: array, items: {enum: x}}`, "properties[x].items.enum: expected a list, got a string"},
		{`{type: array, items: {x-int-or-string: x}}`, "properties[x].items.x-kubernetes-int-or-string: expected a boolean, got a string"},
		{`{type: array, items: {anyOf: [{minLength: 1.5}]}}`, "properties[x].items.anyOf[0].minLength: expected an integer, got a number"},
		{`{type: array, items: {properties: {a: true}}}`, "properties[x].items.properties[a]: expected an object, got a boolean"},
		{`{type: object, externalDocs: {url: "https://example.com"}, additionalProperties: 0}`, "properties[x].additionalProperties: expected a boolean or a schema, got a number"},
		{`{type: array, items: {type: string, required: [1]}}`, "properties[x].items.required[0]: expected a string, got a number"},
	} {
		if got := later(t, vocabulary.K8s()).refusals(t, c.schema); len(got) != 1 || !strings.HasSuffix(got[0], c.want) || !strings.Contains(got[0], "cannot be handled as") {
			t.Errorf("%s: got %q, want %q", c.schema, got, c.want)
		}
	}
}

// TestEmbeddedTypes: apiVersion and kind of embedded resources that are no texts cannot be decoded, and their
// metadata may be null.
func TestEmbeddedTypes(t *testing.T) {
	const embedded = `{type: object, x-embedded-resource: true, x-preserve-unknown-fields: true}`
	w := later(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {x: `+embedded+`, l: {type: array, items: `+embedded+`}}}}}`))
	for _, c := range []struct{ spec, stored, refused string }{
		{`{x: {apiVersion: v1, kind: P, metadata: null}}`, `{x: {apiVersion: v1, kind: P, metadata: {}}}`, ""},
		{`{x: {apiVersion: v1, kind: null}}`, "", "spec.x.kind: Invalid value: null: must be a string"},
		{`{x: {apiVersion: 1, kind: P}}`, "", "spec.x.apiVersion: Invalid value: 1: must be a string"},
		{`{l: [{apiVersion: v1, kind: [P]}]}`, "", `spec.l[0].kind: Invalid value: ["P"]: must be a string`},
		{`{x: null}`, `{}`, ""},
	} {
		stored, err := w.write(t, "spec: "+c.spec)
		if c.refused != "" {
			if s := services.AsStatus(err); err == nil || s.Code != http.StatusBadRequest || !strings.HasSuffix(s.Message, c.refused) {
				t.Errorf("%s: got %v, want %s", c.spec, err, c.refused)
			}
		} else if want := decode(t, "spec: "+c.stored)["spec"]; err != nil || !tree.Equal(stored["spec"], want) {
			t.Errorf("%s: stored %v, %v", c.spec, stored["spec"], err)
		}
	}
}

// TestEmbeddedMetadata: the metadata of an embedded resource is validated like that of any object, except that
// its type, and so the form of its name, is not known. Keys of maps are in brackets in its paths.
func TestEmbeddedMetadata(t *testing.T) {
	w := later(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {m: {type: object, additionalProperties: {type: object, x-embedded-resource: true, x-preserve-unknown-fields: true}}}}}}`))
	for metadata, want := range map[string][]string{
		`{name: Any-Name_1, namespace: n, labels: {a: b}, finalizers: [x]}`: nil,
		`{name: a/b}`:                {"spec.m[k].metadata.name"},
		`{namespace: A}`:             {"spec.m[k].metadata.namespace"},
		`{labels: {"-": x}}`:         {"spec.m[k].metadata.labels"},
		`{finalizers: ["-"]}`:        {"spec.m[k].metadata.finalizers"},
		`{ownerReferences: [{}]}`:    {"spec.m[k].metadata.ownerReferences.apiVersion", "spec.m[k].metadata.ownerReferences.kind", "spec.m[k].metadata.ownerReferences.name", "spec.m[k].metadata.ownerReferences.uid"},
		`{annotations: {"a b": ""}}`: {"spec.m[k].metadata.annotations"},
	} {
		_, err := w.write(t, "spec: {m: {k: {apiVersion: v1, kind: P, metadata: "+metadata+"}}}")
		var got []string
		if s := services.AsStatus(err); err != nil && s.Details != nil {
			for _, c := range s.Details.Causes {
				got = append(got, c.Field)
			}
		}
		slices.Sort(got)
		if !slices.Equal(slices.Compact(got), want) {
			t.Errorf("%s: %v, want %v", metadata, err, want)
		}
	}
	if _, err := w.write(t, "spec: {m: {k: {}}}"); len(services.AsStatus(err).Details.Causes) != 2 {
		t.Errorf("the apiVersion and the kind are missing, once each: %v", err)
	}
	_, err := w.write(t, "spec: {m: {k: {apiVersion: '', kind: '-'}}}")
	if err == nil || !strings.Contains(err.Error(), "spec.m[k].apiVersion: Invalid value") || !strings.Contains(err.Error(), "spec.m[k].kind: Invalid value") {
		t.Errorf("the paths of an embedded resource in a map: %v", err)
	}
}

// TestErrorsOfEmbeddedDefaults: as in Kubernetes, what is wrong with an embedded resource hides the other errors of a default.
func TestErrorsOfEmbeddedDefaults(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{`{apiVersion: a/b/c, kind: P}`, "default.apiVersion: Invalid value: "},
		{`{apiVersion: v1, kind: P, metadata: x}`, "default: Invalid value: "},
		{`{apiVersion: v1, kind: P, metadata: {name: a/b}}`, "default.metadata.name: Invalid value: "},
		{`{apiVersion: v1, kind: P}`, "default: Too many: 2: "},
	} {
		got := later(t, vocabulary.K8s()).refusals(t, `{type: object, x-embedded-resource: true, x-preserve-unknown-fields: true, maxProperties: 1, default: `+c.fields+`}`)
		if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: got %q, want %q", c.fields, got, c.want)
		}
	}
}

// TestNullKindsOfApplies: a null that is applied to the kind of an embedded resource is said to be no text, once, and not
// also to be of a wrong type, for which no rule would be evaluated.
func TestNullKindsOfApplies(t *testing.T) {
	w := later(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object, x-embedded-resource: true, x-preserve-unknown-fields: true}}}`))
	got := w.change(t, "", "{apiVersion: v1, kind: null}")
	if len(got) != 1 || got[0] != "FieldValueInvalid spec.kind: Invalid value: null: must be a string" {
		t.Errorf("got %q", got)
	}
}

// TestUnknownFieldsOfApplies: what field management accepts, as below an object without declared fields, is
// dropped without a word.
func TestUnknownFieldsOfApplies(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, properties: {spec: {type: object}}}`))
	for applied, want := range map[bool]int{true: 0, false: 2} {
		object := decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}, spec: {l: x, v: null}}")
		warnings, err := w.schemas.PrepareChange(t.Context(), schema.Change{Type: w.lookup(t), Object: object, Applied: applied}, schema.Warn)
		if err != nil || len(warnings) != want || fmt.Sprint(object["spec"]) != "map[]" {
			t.Errorf("applied %v: %v, %v, %v", applied, warnings, object["spec"], err)
		}
	}
}

// TestPathsInDefaults: errors of lists and maps that are whole defaults have the paths of kube-apiserver.
func TestPathsInDefaults(t *testing.T) {
	for schema, want := range map[string]string{
		`{type: object, additionalProperties: {type: integer}, default: {k: x}}`: `default.k: Invalid value: "string": .k in body must be of type integer: "string"`,
		`{type: array, items: {type: integer, minimum: 3}, default: [1]}`:        `default.[0]: Invalid value: 1: [0] in body should be greater than or equal to 3`,
	} {
		if got := later(t, vocabulary.K8s()).refusals(t, schema); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", schema, got, want)
		}
	}
}
