package crd_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// ruled returns a world with widgets of this schema. The release 1.21 drops rules from
// definitions, so the definition is not prepared.
func (w world) ruled(t testing.TB, text string, extra ...string) world {
	t.Helper()
	definition := w.widgets(t, text, extra...)
	w.claims(now).Establish(definition, nil)
	rules := w.rules()
	rules.Expressions = cel.New(cel.Config{Release: release.V136})
	if err := rules.Check(definition, nil); err != nil {
		t.Fatal(err)
	}
	d, err := crd.Compile(definition, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
	if err != nil {
		t.Fatal(err)
	}
	types := w.types.With(d.Surface)
	return world{w.vocabulary, types, w.schemas.With(types)}
}

// change validates the replacement of an object, or its creation if old is empty. It
// returns the causes, and the warnings after them.
func (w world) change(t testing.TB, old, text string) (found []string) {
	t.Helper()
	head := "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}}"
	ch := schema.Change{Type: w.lookup(t), Object: decode(t, head), Warn: func(texts ...string) {
		for _, text := range texts {
			found = append(found, "warning: "+text)
		}
	}}
	ch.Object["spec"] = decode(t, "spec: "+text)["spec"]
	if old != "" {
		ch.Old = decode(t, head)
		ch.Old["spec"] = decode(t, "spec: "+old)["spec"]
	}
	if err := w.schemas.ValidateChange(t.Context(), ch); err != nil {
		for _, cause := range services.AsStatus(err).Details.Causes {
			found = append(found, cause.Reason+" "+cause.Field+": "+cause.Message)
		}
	}
	return found
}

const ruledSchema = `{type: object, properties: {spec: {type: object,
  x-validations: [
    {rule: "self.min <= self.max", message: "min is too large", reason: FieldValueForbidden, fieldPath: ".min"},
    {rule: "!has(oldSelf.fixed) || self.fixed == oldSelf.fixed", messageExpression: "'was ' + oldSelf.fixed"},
    {rule: "oldSelf.hasValue() || self.max < 100", optionalOldSelf: true, message: "must start small"}],
  properties: {min: {type: integer}, max: {type: integer}, fixed: {type: string, maxLength: 5},
    parts: {type: array, maxItems: 10, x-list-type: map, x-list-map-keys: [name], items: {type: object, required: [name],
      properties: {name: {type: string, maxLength: 10}, size: {type: integer, x-validations: [{rule: "self >= oldSelf"}]},
        even: {type: integer, x-validations: [{rule: "self % 2 == 0", message: "must be even"}]}}}}}}}}`

func TestValidationRules(t *testing.T) {
	const good = "{min: 1, max: 2, fixed: a}"
	eachVocabulary(t, func(t *testing.T, w world) {
		w = later(t, w.vocabulary).ruled(t, ruledSchema)
		for name, x := range map[string]struct{ old, object, want string }{
			"valid":                        {"", good, ""},
			"a violation":                  {"", "{min: 3, max: 2}", "FieldValueForbidden spec.min: Forbidden: min is too large"},
			"a missing field":              {"", "{min: 3}", `FieldValueInvalid spec: Invalid value: "object": no such key: max evaluating rule: min is too large`},
			"a change of what is fixed":    {good, "{min: 1, max: 2, fixed: b}", `FieldValueInvalid spec: Invalid value: was a`},
			"an optional old value":        {"", "{min: 1, max: 200}", `FieldValueInvalid spec: Invalid value: must start small`},
			"that exists":                  {good, "{min: 1, max: 200, fixed: a}", ""},
			"an item that moved":           {"{min: 1, max: 2, parts: [{name: a, size: 3}, {name: b, size: 1}]}", "{min: 1, max: 2, parts: [{name: b, size: 1}, {name: a, size: 3}]}", ""},
			"an item that shrank":          {"{min: 1, max: 2, parts: [{name: a, size: 3}, {name: b, size: 1}]}", "{min: 1, max: 2, parts: [{name: b, size: 1}, {name: a, size: 2}]}", "FieldValueInvalid spec.parts[1].size: Invalid value: 2: failed rule: self >= oldSelf"},
			"a new item":                   {"{min: 1, max: 2, parts: []}", "{min: 1, max: 2, parts: [{name: a, size: 3}]}", ""},
			"a violation that was there":   {"{min: 1, max: 2, parts: [{name: a, even: 3}]}", "{min: 1, max: 9, parts: [{name: a, even: 3}]}", "warning: spec.parts[0].even: Invalid value: 3: must be even"},
			"a violation that is changed":  {"{min: 1, max: 2, parts: [{name: a, even: 3}]}", "{min: 1, max: 2, parts: [{name: a, even: 5}]}", "FieldValueInvalid spec.parts[0].even: Invalid value: 5: must be even"},
			"an object of the wrong form":  {"", "{min: 3, max: x}", "FieldValueInvalid <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"},
			"one that is only not allowed": {"", "{min: 3, max: 2, fixed: toolong}", "some validation rules were not checked"},
		} {
			found := strings.Join(w.change(t, x.old, x.object), "\n")
			if found != x.want && (x.want == "" || !strings.Contains(found, x.want)) {
				t.Errorf("%s:\ngot  %s\nwant %s", name, found, x.want)
			}
		}
	})
}

// TestUnboundedQuantities: a text of twelve characters whose comparison takes minutes does not reach
// rules that parse quantities. Other rules see it.
func TestUnboundedQuantities(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, w world) {
		const properties = `properties: {cpu: {type: string, maxLength: 20}, list: {type: array, maxItems: 3, items: {type: string, maxLength: 20}}}}}}`
		later := later(t, w.vocabulary)
		parsing := later.ruled(t, `{type: object, properties: {spec: {type: object, x-validations: [{rule: "!has(self.cpu) || quantity(self.cpu).isGreaterThan(quantity('1'))"}], `+properties)
		other := later.ruled(t, `{type: object, properties: {spec: {type: object, x-validations: [{rule: "self.cpu.size() > 0"}], `+properties)
		for name, x := range map[string]struct {
			w                 world
			old, object, want string
		}{
			"a small one":        {parsing, "", "{cpu: 2k}", ""},
			"a large one":        {parsing, "", "{cpu: '1e2000000000'}", "FieldValueInvalid spec.cpu: "},
			"a very small one":   {parsing, "", "{list: [a, '1e-2000000000']}", "FieldValueInvalid spec.list[1]: "},
			"a stored one":       {parsing, "{cpu: '1e2000000000'}", "{cpu: '2'}", ""},
			"one that is a text": {other, "", "{cpu: '1e2000000000'}", ""},
		} {
			found := strings.Join(x.w.change(t, x.old, x.object), "\n")
			if found != x.want && (x.want == "" || !strings.HasPrefix(found, x.want) || !strings.Contains(found, "exponent")) {
				t.Errorf("%s: got %s, want %s", name, found, x.want)
			}
		}
	})
}

// Definitions with wrong rules are refused, with the path of the rule in the vocabulary.
func TestRulesOfDefinitions(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, w world) {
		w = later(t, w.vocabulary)
		rules := w.rules()
		rules.Expressions = cel.New(cel.Config{Release: release.V136})
		err := rules.Check(w.widgets(t, `{type: object, properties: {spec: {type: object, x-validations: [{rule: "self.a == 1"}]}}}`), nil)
		status := services.AsStatus(err)
		want := "spec.validation.openAPIV3Schema.properties[spec]." + w.vocabulary.Extension + "validations[0].rule"
		if status == nil || status.Code != 422 || status.Details.Causes[0].Field != want || !strings.Contains(status.Message, "undefined field 'a'") {
			t.Errorf("%+v", status)
		}
	})
}

// All rules of an object share a budget, and end with the request.
func TestExpensiveRules(t *testing.T) {
	rules := strings.TrimSuffix(strings.Repeat(`{rule: "!self.contains('b')"},`, 6), ",")
	w := later(t, vocabulary.K8s()).ruled(t, `{type: object, properties: {spec: {type: object, properties: {list: {type: array, maxItems: 400, items: {type: string, maxLength: 60000, x-validations: [`+rules+`]}}}}}}`)
	found := strings.Join(w.change(t, "", "{list: [&a "+strings.Repeat("a", 60_000)+strings.Repeat(", *a", 399)+"]}"), "\n")
	if !strings.Contains(found, "validation failed due to running out of cost budget, no further validation rules will be run") {
		t.Errorf("%.300s", found)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	object := decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}, spec: {list: [a]}}")
	err := w.schemas.ValidateChange(ctx, schema.Change{Type: w.lookup(t), Object: object, Warn: func(...string) {}})
	if status := services.AsStatus(err); status == nil || status.Code == 422 || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v", status)
	}
}

// A definition whose schemas are unchanged keeps its compiled rules.
func TestRulesAreCompiledOnce(t *testing.T) {
	w := later(t, vocabulary.Platform())
	definition := w.widgets(t, ruledSchema)
	w.claims(now).Establish(definition, nil)
	in := crd.Setting{Types: w.types, Vocabulary: w.vocabulary, Revision: 1}
	first, err := crd.Compile(definition, in)
	if err != nil {
		t.Fatal(err)
	}
	in.Revision, in.Before = 2, &first
	second, err := crd.Compile(definition, in)
	if err != nil || first.Stored.Rules == nil || first.Stored.Rules != second.Stored.Rules {
		t.Errorf("%v, %v, %v", first.Stored.Rules, second.Stored.Rules, err)
	}
	in.Revision, in.Before = 3, &second
	third, err := crd.Compile(w.widgets(t, strings.Replace(ruledSchema, "must be even", "must be odd", 1)), in)
	if err != nil || third.Stored.Rules == second.Stored.Rules {
		t.Error("rules of another schema are used", err)
	}
}

// Release 1.36 enforces rules, and 1.21 ignores them.
func TestRulesOfReleases(t *testing.T) {
	for r, enforced := range map[release.Release]bool{release.V121: false, release.V136: true} {
		w, err := worldOf(vocabulary.Platform(), r)
		if err != nil {
			t.Fatal(err)
		}
		definition := w.widgets(t, ruledSchema)
		crds, _ := w.types.Lookup("apiextensions.platform.io", "v1", "customresourcedefinitions")
		if _, err := w.schemas.Prepare(t.Context(), crds, definition, schema.Ignore); err != nil {
			t.Fatal(err)
		}
		d, err := crd.Compile(definition, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
		if err != nil || (d.Stored.Rules != nil) != enforced {
			t.Errorf("release %s: %v, %v", r, d.Stored.Rules, err)
		}
	}
}

// later returns a world of release 1.36, which has rules.
func later(t testing.TB, v vocabulary.Vocabulary) world {
	t.Helper()
	w, err := worldOf(v, release.V136)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// worldOf returns a world of a release.
func worldOf(v vocabulary.Vocabulary, r release.Release) (world, error) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: v, Release: r})
	if err != nil {
		return world{}, err
	}
	set, err := builtin.Read()
	if err != nil {
		return world{}, err
	}
	return world{v, types, schema.New(types, v, set.In(r))}, nil
}
